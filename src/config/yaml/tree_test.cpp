#include "config/yaml/tree.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gpu_platform::config {
namespace {

using Kind = YamlTree::Kind;

TEST(YamlTrees, KeepTextsAsTheyAreWritten) {
  const auto trees = read_trees("a: 1.10\nb: \"1\"\nc: ~\nd: [x, {e: y}]\n");
  ASSERT_TRUE(trees);
  ASSERT_EQ(trees->size(), 1U);
  const auto& entries = trees->front().entries;
  ASSERT_EQ(entries.size(), 4U);
  EXPECT_EQ(entries[0].kind, Kind::kPlain);
  EXPECT_EQ(entries[0].text, "1.10");
  EXPECT_EQ(entries[1].kind, Kind::kQuoted);
  EXPECT_EQ(entries[2].kind, Kind::kNull);
  EXPECT_EQ(entries[3].list[1].entries[0].text, "y");
  EXPECT_EQ(entries[3].line, 4);
}

TEST(YamlTrees, AreOneForEachDocument) {
  const auto trees = read_trees("# nothing\n---\na: |\n  x\n  y\n--- {b: 1}\n---\n");
  ASSERT_TRUE(trees);
  ASSERT_EQ(trees->size(), 2U);
  EXPECT_EQ(trees->front().entries[0].text, "x\ny\n");
  EXPECT_EQ(trees->back().entries[0].key, "b");
  EXPECT_EQ(trees->back().entries[0].line, 6);
}

TEST(YamlTrees, NameThePlaceOfAMistake) {
  EXPECT_EQ(read_trees("a: 1\n---\nb: 1\nb: 2\n").error().line, 4);
  EXPECT_EQ(read_trees("a: 1\n---\nb: [\n").error().message.substr(0, 14), "not valid YAML");
  EXPECT_FALSE(read_trees("---\n, x\n"));
  EXPECT_FALSE(read_trees(std::string("a\0b", 3)));
  EXPECT_FALSE(read_trees(std::string((std::size_t{1} << 20) + 1, ' ')));
}

TEST(YamlTrees, AreNotMadeLargeByAliases) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    bomb +=
        fmt::format("a{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  }
  EXPECT_EQ(read_trees(bomb).error().message, "too many values");
  std::string deep = "a: ";
  for (int i = 0; i < 40; ++i) deep += '[';
  for (int i = 0; i < 40; ++i) deep += ']';
  EXPECT_EQ(read_trees(deep).error().message, "too many levels");
}

}  // namespace
}  // namespace gpu_platform::config
