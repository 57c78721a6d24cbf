#include "scheduling/group_tree.h"
#include "scheduling/testing/draw.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace gpu_platform::scheduling {
namespace {

GroupKey random_key() {
  return {.free_gpus = static_cast<std::uint32_t>(draw(4)),
          .cpus = static_cast<std::uint32_t>(draw(8)),
          .memory = base::Bytes(static_cast<std::int64_t>(draw(16))),
          .gpus = draw(2)};
}

Reach random_reach() {
  const auto draw_small = [] { return static_cast<std::uint8_t>(draw(5)); };
  return {.nvlink = draw_small(), .numa_node = draw_small(), .socket = draw_small()};
}

bool is_enough(const std::pair<const GroupKey, Group>& entry, const GroupNeed& need) {
  return entry.first.memory >= need.memory && entry.second.reach.holds(need.rank, need.gpus);
}

TEST(GroupTreeProperty, FindsWhatAWalkInOrderFindsAfterAnyInsertionsAndErasures) {
  EXPECT_TRUE(rc::check([] {
    GroupTree tree;
    for (std::uint64_t steps = draw(100); steps > 0; --steps) {
      if (draw(3) == 0) {
        tree.erase(random_key());
      } else {
        tree.insert(
            {random_key(),
             Group{.nodes = {{model::NodeId(1), 0}}, .by_leaf = {}, .reach = random_reach()}});
      }
      const GroupKey from = random_key();
      const GroupNeed need{.memory = base::Bytes(static_cast<std::int64_t>(draw(17))),
                           .gpus = static_cast<std::uint32_t>(draw(5)),
                           .rank = kAllRanks[draw(4)]};
      auto expected = tree.lower_bound(from);
      while (expected != tree.end() && !is_enough(*expected, need)) ++expected;
      RC_ASSERT((first_with(tree, from, need) == expected));
    }
  }));
}

}  // namespace
}  // namespace gpu_platform::scheduling
