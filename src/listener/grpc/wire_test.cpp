#include "listener/grpc/wire.h"

#include <gtest/gtest.h>

namespace gpu_platform::listener {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(GrpcWire, MessagesComeWholeHoweverTheyAreCut) {
  std::string bytes;
  append_framed(bytes, "one");
  append_framed(bytes, "");
  append_framed(bytes, std::string(70'000, 'x'));
  for (const std::size_t piece : {1UL, 4UL, 5UL, 1'000UL, bytes.size()}) {
    GrpcMessageReader reader(100'000);
    std::vector<std::size_t> sizes;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      ASSERT_TRUE(reader.put(std::string_view(bytes).substr(at, piece)).has_value());
      while (const auto message = reader.next()) sizes.push_back(message->size());
    }
    EXPECT_EQ(sizes, (std::vector<std::size_t>{3, 0, 70'000})) << piece;
    EXPECT_TRUE(reader.is_between());
  }
}

TEST(GrpcWire, LargeAndCompressedMessagesAreRefusedAtTheirPrefix) {
  GrpcMessageReader large(10);
  EXPECT_EQ(large.put(std::string("\0\0\0\0\x0b", 5)).error().code,
            base::ErrorCode::kResourceExhausted);
  GrpcMessageReader huge(10);
  EXPECT_EQ(huge.put("\xff").has_value(), true);  // not yet a prefix
  EXPECT_FALSE(huge.put("\xff\xff\xff\xff").has_value());
  GrpcMessageReader compressed(10);
  EXPECT_EQ(compressed.put(std::string("\1\0\0\0\0", 5)).error().code,
            base::ErrorCode::kInvalidArgument);
  GrpcMessageReader cut(10);
  EXPECT_TRUE(cut.put(std::string("\0\0\0", 3)).has_value());
  EXPECT_FALSE(cut.is_between());
  EXPECT_FALSE(cut.next().has_value());
}

TEST(GrpcWire, TimesHaveAUnit) {
  EXPECT_EQ(parse_timeout("100m"), milliseconds(100));
  EXPECT_EQ(parse_timeout("2S"), milliseconds(2'000));
  EXPECT_EQ(parse_timeout("1H"), hours(1));
  EXPECT_EQ(parse_timeout("1500u"), milliseconds(1));
  EXPECT_EQ(parse_timeout("7n"), milliseconds(1));
  EXPECT_EQ(parse_timeout("0m"), milliseconds(1));
  EXPECT_EQ(parse_timeout("99999999H"), hours(365 * 24));
  for (const char* wrong : {"", "1", "m", "1x", "-1S", "+1S", "1.5S", "123456789S", " 1S", "1S "}) {
    EXPECT_EQ(parse_timeout(wrong), std::nullopt) << wrong;
  }
}

TEST(GrpcWire, TextsOfTrailersAreOneAsciiLine) {
  EXPECT_EQ(percent_encoded("50 % of \"ä\"\r\n"), "50 %25 of \"%C3%A4\"%0D%0A");
}

}  // namespace
}  // namespace gpu_platform::listener
