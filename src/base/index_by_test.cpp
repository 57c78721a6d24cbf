#include "base/index_by.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace gpu_platform::base {
namespace {

struct Numbered {
  int number = 0;
  int mark = 0;
};

std::size_t looks = 0;
int number_of(const Numbered& value) {
  ++looks;
  return value.number;
}
using Index = IndexBy<Numbered, &number_of>;

TEST(IndexBy, FindsEachValueInWhateverOrderTheyCame) {
  const std::vector<Numbered> values{{7, 1}, {2, 2}, {5, 3}, {2, 4}};
  const Index index{values};
  EXPECT_EQ(index.find(7)->mark, 1);
  EXPECT_EQ(index.find(5)->mark, 3);
  EXPECT_EQ(index.find(2)->mark, 2) << "the first of two";
  EXPECT_EQ(index.find(3), nullptr);
  EXPECT_EQ(Index().find(3), nullptr);
}

TEST(IndexBy, LooksAtFewOfManyValues) {
  constexpr int kValues = 100'000;
  std::vector<Numbered> values;
  for (int i = 0; i < kValues; ++i) values.push_back({i, i});
  looks = 0;
  const Index index{values};
  EXPECT_LE(looks, 2U * kValues) << "they are in order already";
  looks = 0;
  for (int i = 0; i < kValues; ++i) ASSERT_EQ(index.find(i)->mark, i);
  EXPECT_LE(looks, 20U * kValues);
}

}  // namespace
}  // namespace gpu_platform::base
