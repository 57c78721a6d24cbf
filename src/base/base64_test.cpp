#include "base/base64.h"

#include <utility>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace gpu_platform::base {
namespace {

constexpr Base64 kForms[] = {Base64::kStandard, Base64::kUrl, Base64::kUrlUnpadded};

TEST(Base64, HasTheFormsOfRfc4648) {
  const std::pair<const char*, const char*> kVectors[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : kVectors) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(parse_base64(text), bytes);
  }
  EXPECT_EQ(to_base64("?>~\xff"), "Pz5+/w==");
  EXPECT_EQ(to_base64("?>~\xff", Base64::kUrl), "Pz5-_w==");
  EXPECT_EQ(to_base64("?>~\xff", Base64::kUrlUnpadded), "Pz5-_w");
}

TEST(Base64, IsReadBackUnchanged) {
  Prng prng(7);
  for (std::size_t size = 0; size < 70; ++size) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>(prng.below(256)));
    for (const Base64 form : kForms) {
      std::string text = "before ";
      append_base64(text, bytes, form);
      EXPECT_EQ(parse_base64(std::string_view(text).substr(7), form), bytes);
    }
  }
}

TEST(Base64, HasOneTextForBytes) {
  for (const char* text : {"A", "AB", "ABC", "====", "A===", "AA=A", "AA==AAAA", "AAA=\n", " AAA",
                           "AA==\n", "AA-_", "AB==", "AAB=", "AA\xc3\xa4", "AAAAA==="}) {
    EXPECT_FALSE(parse_base64(text)) << text;
  }
  for (const char* text : {"AA==", "AA+/", "A", "AB", "AAB", "AAAAA"}) {
    EXPECT_FALSE(parse_base64(text, Base64::kUrlUnpadded)) << text;
  }
  EXPECT_FALSE(parse_base64("AA", Base64::kUrl));
  EXPECT_FALSE(parse_base64("AA+/", Base64::kUrl));
}

TEST(Base64, KnowsItsCharacters) {
  EXPECT_TRUE(is_base64('+') && is_base64('=') && is_base64('A'));
  EXPECT_FALSE(is_base64('-') || is_base64(' ') || is_base64('+', Base64::kUrl));
  EXPECT_TRUE(is_base64('-', Base64::kUrlUnpadded));
  EXPECT_FALSE(is_base64('=', Base64::kUrlUnpadded));
}

}  // namespace
}  // namespace gpu_platform::base
