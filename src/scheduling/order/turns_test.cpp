#include "scheduling/order/turns.h"

#include <algorithm>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace gpu_platform::scheduling {
namespace {

using Turn = Turns::Turn;

model::JobSpec of_team(std::string team, std::string user = "ann") {
  model::JobSpec spec;
  spec.team = std::move(team);
  spec.user = std::move(user);
  return spec;
}

Turn turn(std::int64_t since_s, std::uint64_t job) {
  return {base::Instant() + base::seconds(since_s), model::JobId(job)};
}

TEST(Turns, AreOfTheOldestOfEachTeamInTheOrderOfTheirWaiting) {
  Turns turns;
  EXPECT_FALSE(turns.next());
  turns.put(of_team("a"), turn(20, 1));
  turns.put(of_team("b"), turn(10, 2));
  turns.put(of_team("b"), turn(11, 3));
  EXPECT_EQ(turns.next(), turn(10, 2));
  turns.pass(of_team("b"), model::JobId(2));
  EXPECT_EQ(turns.next(), turn(20, 1));
  turns.erase(of_team("b"), model::JobId(2));
  EXPECT_EQ(turns.next(), turn(11, 3));
}

TEST(Turns, UsersWithoutATeamAreTeamsOfTheirOwn) {
  Turns turns;
  turns.put(of_team("", "ann"), turn(10, 1));
  turns.put(of_team("", "bob"), turn(20, 2));
  turns.pass(of_team("", "ann"), model::JobId(1));
  EXPECT_EQ(turns.next(), turn(20, 2));
}

// Against a list that is searched through.
TEST(Turns, AreThoseOfAPlainSearch) {
  struct Waiting {
    std::string team;
    Turn turn;
    bool is_passed = false;
  };
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    base::Prng random(seed);
    Turns turns;
    std::vector<Waiting> all;
    for (std::uint64_t step = 1; step <= 60; ++step) {
      if (all.empty() || random.chance(1, 2)) {
        Waiting fresh{"t" + std::to_string(random.below(3)),
                      turn(static_cast<std::int64_t>(step), step)};
        turns.put(of_team(fresh.team), fresh.turn);
        all.push_back(fresh);
      } else if (random.chance(1, 2)) {
        const auto at = static_cast<std::ptrdiff_t>(random.below(all.size()));
        turns.erase(of_team(all[static_cast<std::size_t>(at)].team),
                    all[static_cast<std::size_t>(at)].turn.job);
        all.erase(all.begin() + at);
      } else if (const auto next = turns.next()) {
        const auto found = std::ranges::find(all, *next, &Waiting::turn);
        ASSERT_NE(found, all.end());
        turns.pass(of_team(found->team), next->job);
        found->is_passed = true;
      }
      std::map<std::string, const Waiting*> oldest;
      for (const Waiting& each : all) {
        const Waiting*& first = oldest[each.team];
        if (first == nullptr || each.turn < first->turn) first = &each;
      }
      std::optional<Turn> expected;
      for (const auto& [team, first] : oldest) {
        if (first->is_passed) continue;
        if (!expected || first->turn < *expected) expected = first->turn;
      }
      ASSERT_EQ(turns.next(), expected) << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace gpu_platform::scheduling
