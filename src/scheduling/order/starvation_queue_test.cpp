#include "scheduling/order/starvation_queue.h"

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "model/job_spec.h"

namespace gpu_platform::scheduling {
namespace {

using Entry = StarvationQueue::Entry;

model::JobSpec of_team(std::string team, std::string user = "ann") {
  model::JobSpec spec;
  spec.team = std::move(team);
  spec.user = std::move(user);
  return spec;
}

Entry entry(std::int64_t since_s, std::uint64_t job) {
  return {base::Instant() + base::seconds(since_s), model::JobId(job)};
}

TEST(StarvationQueue, AreOfTheOldestOfEachTeamInTheOrderOfTheirWaiting) {
  StarvationQueue queue;
  EXPECT_FALSE(queue.next());
  queue.put(of_team("a"), entry(20, 1));
  queue.put(of_team("b"), entry(10, 2));
  queue.put(of_team("b"), entry(11, 3));
  EXPECT_EQ(queue.next(), entry(10, 2));
  queue.pass(of_team("b"), model::JobId(2));
  EXPECT_EQ(queue.next(), entry(20, 1));
  queue.erase(of_team("b"), model::JobId(2));
  EXPECT_EQ(queue.next(), entry(11, 3));
}

TEST(StarvationQueue, UsersWithoutATeamAreTeamsOfTheirOwn) {
  StarvationQueue queue;
  queue.put(of_team("", "ann"), entry(10, 1));
  queue.put(of_team("", "bob"), entry(20, 2));
  queue.pass(of_team("", "ann"), model::JobId(1));
  EXPECT_EQ(queue.next(), entry(20, 2));
}

// Against a list that is searched through.
TEST(StarvationQueue, AreThoseOfAPlainSearch) {
  struct Waiting {
    std::string team;
    Entry entry;
    bool is_passed = false;
  };
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    base::Prng random(seed);
    StarvationQueue queue;
    std::vector<Waiting> all;
    for (std::uint64_t step = 1; step <= 60; ++step) {
      if (all.empty() || random.chance(1, 2)) {
        Waiting fresh{"t" + std::to_string(random.below(3)),
                      entry(static_cast<std::int64_t>(step), step)};
        queue.put(of_team(fresh.team), fresh.entry);
        all.push_back(fresh);
      } else if (random.chance(1, 2)) {
        const auto at = static_cast<std::ptrdiff_t>(random.below(all.size()));
        queue.erase(of_team(all[static_cast<std::size_t>(at)].team),
                    all[static_cast<std::size_t>(at)].entry.job);
        all.erase(all.begin() + at);
      } else if (const auto next = queue.next()) {
        const auto found = std::ranges::find(all, *next, &Waiting::entry);
        ASSERT_NE(found, all.end());
        queue.pass(of_team(found->team), next->job);
        found->is_passed = true;
      }
      std::map<std::string, const Waiting*> oldest;
      for (const Waiting& each : all) {
        const Waiting*& first = oldest[each.team];
        if (first == nullptr || each.entry < first->entry) first = &each;
      }
      std::optional<Entry> expected;
      for (const auto& [team, first] : oldest) {
        if (first->is_passed) continue;
        if (!expected || first->entry < *expected) expected = first->entry;
      }
      ASSERT_EQ(queue.next(), expected) << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace gpu_platform::scheduling
