#include "base/prng.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "base/hash.h"

namespace gpu_platform::base {
namespace {

// Seeds printed today must give the same world on every platform and in every version.
TEST(Prng, GivesTheSameNumbersForEver) {
  Prng random(1);
  const std::array<std::uint64_t, 3> expected = {0xb3f2af6d0fc710c5ULL, 0x853b559647364ceaULL,
                                                 0x92f89756082a4514ULL};
  for (const std::uint64_t number : expected) EXPECT_EQ(random.next(), number);
}

TEST(Prng, BelowStaysBelowAndReachesEverything) {
  Prng random(7);
  std::array<int, 6> seen = {};
  for (int i = 0; i < 6000; ++i) ++seen.at(random.below(6));
  for (const int count : seen) {
    EXPECT_GT(count, 800);
    EXPECT_LT(count, 1200);
  }
  EXPECT_EQ(random.below(1), 0U);
}

TEST(Prng, ChanceIsTrueAsOftenAsItSays) {
  Prng random(9);
  int hits = 0;
  for (int i = 0; i < 10'000; ++i) hits += random.chance(1, 10) ? 1 : 0;
  EXPECT_GT(hits, 850);
  EXPECT_LT(hits, 1150);
  EXPECT_FALSE(random.chance(0, 5));
  EXPECT_TRUE(random.chance(5, 5));
}

TEST(PrngDeath, BelowNothingStopsTheProgram) {
  EXPECT_DEATH(Prng(1).below(0), "broken assumption");
}

TEST(Hash, SeesEveryByteAndTheLength) {
  const std::string_view text = "0123456789abcdef0";
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_NE(hash64(text.substr(0, size)), hash64(text.substr(0, size + 1))) << size;
  }
  EXPECT_NE(hash64("a"), hash64("b"));
  EXPECT_NE(hash64("a", 1), hash64("a", 2));
  EXPECT_NE(hash64(std::string_view("\0", 1)), hash64(std::string_view("\0\0", 2)));
}

}  // namespace
}  // namespace gpu_platform::base
