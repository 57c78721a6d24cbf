#include "base/codec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/prng.h"

namespace gpu_platform::base {
namespace {

TEST(Codec, NumbersComeBackAtEveryLength) {
  for (int bits = 0; bits <= 64; ++bits) {
    const std::uint64_t power = bits == 64 ? 0 : std::uint64_t{1} << bits;
    for (const std::uint64_t value : {power - 1, power, power + 1}) {
      std::string bytes;
      Encoder(bytes).u64(value);
      Encoder(bytes).i64(static_cast<std::int64_t>(value));
      Decoder decoder(bytes);
      EXPECT_EQ(decoder.u64(), value);
      EXPECT_EQ(decoder.i64(), static_cast<std::int64_t>(value));
      EXPECT_TRUE(decoder.ok());
      EXPECT_TRUE(decoder.at_end());
    }
  }
}

TEST(Codec, TextAndBooleansComeBack) {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.text(std::string_view("a\0b", 3));
  encoder.boolean(true);
  encoder.text("");
  encoder.boolean(false);
  Decoder decoder(bytes);
  EXPECT_EQ(decoder.text(), std::string_view("a\0b", 3));
  EXPECT_TRUE(decoder.boolean());
  EXPECT_EQ(decoder.text(), "");
  EXPECT_FALSE(decoder.boolean());
  EXPECT_TRUE(decoder.ok());
}

struct Damage {
  std::string_view what;
  std::string bytes;
};

TEST(Codec, DamageIsSeenAndReadsNothingBeyond) {
  const Damage damages[] = {
      {"a number cut off", std::string("\x80\x80", 2)},
      {"a number of more than 64 bits", std::string(9, '\xff') + '\x02'},
      {"a number that never ends", std::string(20, '\xff')},
      {"nothing", ""},
  };
  for (const Damage& damage : damages) {
    Decoder decoder(damage.bytes);
    EXPECT_EQ(decoder.u64(), 0U) << damage.what;
    EXPECT_FALSE(decoder.ok()) << damage.what;
  }
  Decoder text(std::string_view("\x05xy", 3));
  EXPECT_EQ(text.text(), "");
  EXPECT_FALSE(text.ok());
  Decoder boolean(std::string_view("\x02", 1));
  boolean.boolean();
  EXPECT_FALSE(boolean.ok());
  Decoder count(std::string_view("\x7f", 1));
  EXPECT_EQ(count.count(), 0U);
  EXPECT_FALSE(count.ok());
  Decoder fixed(std::string_view("\x09\0\0\0ab", 6));
  EXPECT_EQ(fixed.fixed_length_text(), "");
  EXPECT_FALSE(fixed.ok());
}

TEST(Codec, AfterDamageEverythingIsEmpty) {
  Decoder decoder(std::string_view("\x05ok\x01", 4));
  decoder.text();
  EXPECT_FALSE(decoder.ok());
  EXPECT_EQ(decoder.u64(), 0U);
  EXPECT_EQ(decoder.text(), "");
  EXPECT_TRUE(decoder.at_end());
}

TEST(Codec, RandomBytesNeverReadOutOfBounds) {
  Prng random(3);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes;
    for (std::uint64_t n = random.below(24); n > 0; --n) {
      bytes.push_back(static_cast<char>(random.below(256)));
    }
    Decoder decoder(bytes);
    for (int reads = 0; reads < 8 && decoder.ok(); ++reads) {
      switch (random.below(5)) {
        case 0:
          decoder.u64();
          break;
        case 1:
          decoder.i64();
          break;
        case 2:
          EXPECT_LE(decoder.text().size(), bytes.size());
          break;
        case 3:
          EXPECT_LE(decoder.fixed_length_text().size(), bytes.size());
          break;
        default:
          EXPECT_LE(decoder.count(), bytes.size());
          break;
      }
    }
  }
}

}  // namespace
}  // namespace gpu_platform::base
