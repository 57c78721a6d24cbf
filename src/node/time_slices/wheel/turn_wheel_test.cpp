#include "node/time_slices/wheel/turn_wheel.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/prng.h"

namespace gpu_platform::node {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSlice = 100 * kMs;

model::AttemptId job(std::uint64_t number) {
  return {model::JobId(number), 1};
}

// Cgroups that stand still a given time after they were told to. Time is only what the wheel waits
// for.
class World {
 public:
  TurnWheel wheel;
  std::int64_t now = 1000 * kMs;
  std::int64_t freeze_time = 200'000;
  std::set<model::AttemptId> stubborn;  // never stand still
  std::set<model::AttemptId> excused;   // awake for a reason: held, or thawed by another
  std::map<model::AttemptId, std::int64_t> awake_time;
  std::vector<model::AttemptId> turns;  // each that was thawed, in order
  std::vector<model::AttemptId> told;
  int overlaps = 0;  // turns that began while another member was awake

  void set(std::vector<TurnMember> members, std::int64_t slice = kSlice) {
    for (const TurnMember& member : members) bodies_.try_emplace(member.attempt);
    wheel.set_members(members, slice, now);
    act();
  }
  void thaw_from_outside(model::AttemptId attempt) {
    excused.insert(attempt);
    set_awake(attempt, true);
    bodies_[attempt].freezes_at = 0;
    wheel.was_thawed(attempt, now);
    act();
  }
  void hold(model::AttemptId attempt, bool is_so) {
    if (is_so) excused.insert(attempt);
    wheel.is_held(attempt, is_so, now);
    act();
  }
  void empty(model::AttemptId attempt, bool is_so) {
    wheel.is_empty(attempt, is_so, now);
    act();
  }

  void idle() {
    wheel.gpu_is_idle(now);
    act();
  }

  void run_for(std::int64_t time) { run_until(now + time); }
  void run_until(std::int64_t end) {
    while (now < end) {
      std::int64_t next = end;
      if (const std::int64_t at = wheel.wake_at(); at != 0) next = std::min(next, at);
      for (const auto& [attempt, body] : bodies_) {
        if (body.freezes_at != 0) next = std::min(next, body.freezes_at);
      }
      advance_to(std::max(next, now));
      for (auto& [attempt, body] : bodies_) {
        if (body.freezes_at == 0 || body.freezes_at > now) continue;
        body.freezes_at = 0;
        set_awake(attempt, false);
        excused.erase(attempt);
        wheel.stands_still(attempt, now);
        act();
      }
      wheel.time_passed(now);
      act();
    }
  }
  bool is_awake(model::AttemptId attempt) { return bodies_[attempt].is_awake; }
  double share_of(model::AttemptId attempt) {
    std::int64_t all = 0;
    for (const auto& [each, time] : awake_time) all += time;
    return static_cast<double>(awake_time[attempt]) / static_cast<double>(all);
  }

 private:
  struct Body {
    bool is_awake = true;
    std::int64_t freezes_at = 0;
  };

  void advance_to(std::int64_t to) {
    for (const auto& [attempt, body] : bodies_) {
      if (body.is_awake) awake_time[attempt] += to - now;
    }
    now = to;
  }
  void set_awake(model::AttemptId attempt, bool is_so) { bodies_[attempt].is_awake = is_so; }

  void act() {
    while (const auto action = wheel.take_action()) {
      const model::AttemptId attempt = action->attempt;
      Body& body = bodies_[attempt];
      switch (action->kind) {
        case TurnAction::Kind::kFreeze:
          if (!stubborn.contains(attempt)) body.freezes_at = now + freeze_time;
          break;
        case TurnAction::Kind::kThaw:
          body.freezes_at = 0;
          if (wheel.current() == attempt) begin_turn(attempt);
          set_awake(attempt, true);
          break;
        case TurnAction::Kind::kTellWakeful:
          told.push_back(attempt);
          break;
      }
    }
  }
  void begin_turn(model::AttemptId attempt) {
    turns.push_back(attempt);
    for (const auto& [other, body] : bodies_) {
      const bool is_excused = excused.contains(other) || stubborn.contains(other);
      if (other != attempt && body.is_awake && !is_excused) ++overlaps;
    }
  }

  std::map<model::AttemptId, Body> bodies_;
};

TEST(TurnWheel, ThawsTheFirstOnlyWhenAllStandStill) {
  World world;
  world.set({{job(1), 1}, {job(2), 1}});
  EXPECT_EQ(world.wheel.current(), std::nullopt);
  EXPECT_TRUE(world.turns.empty());
  world.run_for(world.freeze_time);
  EXPECT_EQ(world.wheel.current(), job(1));
  EXPECT_TRUE(world.is_awake(job(1)));
  EXPECT_FALSE(world.is_awake(job(2)));
}

TEST(TurnWheel, GivesEachATurnInItsOrder) {
  World world;
  world.set({{job(1), 1}, {job(2), 1}, {job(3), 1}});
  world.run_for(6 * kSlice + 50 * kMs);
  const std::vector<model::AttemptId> expected{job(1), job(2), job(3), job(1),
                                               job(2), job(3), job(1)};
  EXPECT_EQ(world.turns, expected);
  EXPECT_EQ(world.overlaps, 0);
}

TEST(TurnWheel, DividesTwentySlicesByTheWeights) {
  for (const std::uint32_t weight : {1U, 2U, 3U, 7U, 19U}) {
    World world;
    world.set({{job(1), weight}, {job(2), 20 - weight}});
    world.run_for(world.freeze_time);
    world.awake_time.clear();
    world.run_for(20 * kSlice);
    EXPECT_NEAR(world.share_of(job(1)), weight / 20.0, 0.01) << weight;
  }
}

// Two thousandths of 200 ms are no turn of their own.
TEST(TurnWheel, SavesUpForATurnWhatIsTooLittleForOne) {
  World world;
  world.set({{job(1), 14}, {job(2), 6986}});
  world.run_for(1000 * kSlice);
  EXPECT_NEAR(world.share_of(job(1)), 0.002, 0.0005);
  const auto turns = std::ranges::count(world.turns, job(1));
  EXPECT_GE(turns, 5);
  EXPECT_LE(turns, 11);
}

TEST(TurnWheel, SettlesATurnThatTookTooLong) {
  World world;
  world.set({{job(1), 1}, {job(2), 1}});
  world.run_for(world.freeze_time);
  world.freeze_time = 7 * kSlice;
  world.run_for(kSlice + kSlice / 2);
  world.freeze_time = kMs;
  world.run_for(200 * kSlice);
  EXPECT_NEAR(world.share_of(job(1)), 0.5, 0.01);
}

TEST(TurnWheel, LeavesTheOnlyOneThatCanRunAwake) {
  World world;
  world.set({{job(1), 1}, {job(2), 1}});
  world.run_for(kSlice / 2);
  world.empty(job(2), true);
  const auto turns = world.turns.size();
  world.run_for(100 * kSlice);
  EXPECT_EQ(world.turns.size(), turns);
  EXPECT_EQ(world.wheel.current(), job(1));
  EXPECT_EQ(world.wheel.wake_at(), 0) << "there is nothing to wait for";
}

TEST(TurnWheel, PassesOnTheTurnOfOneThatHasBecomeEmpty) {
  World world;
  world.set({{job(1), 1}, {job(2), 1}});
  world.run_for(kSlice / 10);
  ASSERT_EQ(world.wheel.current(), job(1));
  world.empty(job(1), true);
  world.run_for(world.freeze_time);
  EXPECT_EQ(world.wheel.current(), job(2));
}

// It is not paid back for the time in which it had nothing to run.
TEST(TurnWheel, SavesNothingForOneThatCannotRun) {
  World world;
  world.set({{job(1), 1}, {job(2), 1}});
  world.run_for(10 * kSlice);
  world.empty(job(2), true);
  world.run_for(100 * kSlice);
  world.empty(job(2), false);
  world.awake_time.clear();
  world.run_for(20 * kSlice);
  EXPECT_NEAR(world.share_of(job(2)), 0.5, 0.04);
}

TEST(TurnWheel, ThawsOneThatIsNoMemberAnyMore) {
  World world;
  world.set({{job(1), 1}, {job(2), 1}});
  world.run_for(kSlice / 2);
  ASSERT_FALSE(world.is_awake(job(2)));
  world.set({{job(1), 1}});
  EXPECT_TRUE(world.is_awake(job(2)));
  EXPECT_TRUE(world.is_awake(job(1)));
}

TEST(TurnWheel, GoesOnWhereTheSameMembersAreSetAgain) {
  World world;
  world.set({{job(1), 1}, {job(2), 1}});
  world.run_for(kSlice / 2);
  const auto turns = world.turns.size();
  const std::int64_t wake_at = world.wheel.wake_at();
  world.set({{job(1), 1}, {job(2), 1}});
  EXPECT_EQ(world.turns.size(), turns);
  EXPECT_EQ(world.wheel.wake_at(), wake_at);
}

TEST(TurnWheel, GivesATurnAtOnceToOneThatWasThawed) {
  World world;
  world.set({{job(1), 1}, {job(2), 1}});
  world.run_for(kSlice / 4);
  ASSERT_EQ(world.wheel.current(), job(1));
  world.thaw_from_outside(job(2));
  EXPECT_EQ(world.wheel.current(), job(2));
  world.run_for(world.freeze_time);
  EXPECT_FALSE(world.is_awake(job(1)));
  world.run_for(kSlice + world.freeze_time);
  EXPECT_EQ(world.wheel.current(), job(1)) << "it has most of its turn left";
}

// Asking all the time wins nothing.
TEST(TurnWheel, KeepsTheSharesWhereOneIsThawedAgainAndAgain) {
  World world;
  world.set({{job(1), 1}, {job(2), 1}});
  for (int i = 0; i < 1000; ++i) {
    world.run_for(kSlice / 3);
    world.thaw_from_outside(job(2));
  }
  EXPECT_NEAR(world.share_of(job(2)), 0.5, 0.03);
}

TEST(TurnWheel, LeavesOneThatIsHeldAwakeBesideTheTurns) {
  World world;
  world.set({{job(1), 1}, {job(2), 1}, {job(3), 1}});
  world.run_for(kSlice / 2);
  world.hold(job(2), true);
  EXPECT_TRUE(world.is_awake(job(2)));
  world.run_for(10 * kSlice);
  EXPECT_TRUE(world.is_awake(job(2)));
  EXPECT_GE(std::ranges::count(world.turns, job(3)), 4);
  world.hold(job(2), false);
  EXPECT_EQ(world.wheel.current(), job(2));
}

TEST(TurnWheel, DoesNotWaitForEverForOneThatDoesNotStandStill) {
  World world;
  world.stubborn.insert(job(1));
  world.set({{job(1), 1}, {job(2), 1}});
  world.run_for(world.freeze_time + 1);
  EXPECT_EQ(world.wheel.current(), std::nullopt);
  world.run_for(20 * TurnWheel::kFreezeLimit);
  EXPECT_GE(std::ranges::count(world.turns, job(2)), 5);
  EXPECT_EQ(world.told, std::vector{job(1)}) << "once";
}

TEST(TurnWheel, HasNoTurnWhereNoneCanRun) {
  World world;
  world.set({{job(1), 1}, {job(2), 1}});
  world.empty(job(1), true);
  world.empty(job(2), true);
  world.run_for(10 * kSlice);
  EXPECT_EQ(world.wheel.current(), std::nullopt);
  world.empty(job(2), false);
  EXPECT_EQ(world.wheel.current(), job(2));
}

TEST(TurnWheel, ForgetsOneWhoseCgroupIsGone) {
  World world;
  world.set({{job(1), 1}, {job(2), 1}});
  world.run_for(kSlice / 2);
  world.wheel.is_gone(job(1), world.now);
  world.run_for(world.freeze_time);
  EXPECT_EQ(world.wheel.current(), job(2));
  EXPECT_FALSE(world.wheel.is_to_stand_still(job(1)));
}

constexpr std::int64_t kIdleSlice = 10'000 * kMs;

TEST(TurnWheel, GivesOnTheTurnOfOneThatLeavesTheGpuIdle) {
  World world;
  world.set({{job(1), 1}, {job(2), 1}}, kIdleSlice);
  world.run_for(world.freeze_time);
  ASSERT_EQ(world.wheel.current(), job(1));
  world.run_for(TurnWheel::kShortestIdleTurn - 1);
  world.idle();
  EXPECT_EQ(world.wheel.current(), job(1)) << "what is measured may be of the turn before";
  world.run_for(1);
  world.idle();
  EXPECT_EQ(world.wheel.current(), std::nullopt);
  world.run_for(world.freeze_time);
  EXPECT_EQ(world.wheel.current(), job(2));
  EXPECT_EQ(world.overlaps, 0);
}

// It gets its turns as ever, and is not paid back for those that it gave on.
TEST(TurnWheel, OwesNothingForTheTurnsThatWereGivenOn) {
  World world;
  world.set({{job(1), 1}, {job(2), 1}}, kIdleSlice);
  for (int i = 0; i < 200; ++i) {
    world.run_for(TurnWheel::kShortestIdleTurn / 4);
    if (world.wheel.current() == job(1)) world.idle();
  }
  EXPECT_LT(world.share_of(job(1)), 0.2);
  world.awake_time.clear();
  world.run_for(20 * kIdleSlice);
  EXPECT_NEAR(world.share_of(job(1)), 0.5, 0.06);
}

TEST(TurnWheel, HasNoOneToGiveTheTurnOnToWhereOneCanRunAlone) {
  World world;
  world.set({{job(1), 1}, {job(2), 1}}, kIdleSlice);
  world.run_for(world.freeze_time);
  world.empty(job(2), true);
  world.run_for(2 * TurnWheel::kShortestIdleTurn);
  world.idle();
  EXPECT_EQ(world.wheel.current(), job(1));
  EXPECT_TRUE(world.is_awake(job(1)));
}

TEST(TurnWheel, IgnoresFactsOfUnknownMembers) {
  TurnWheel wheel;
  wheel.stands_still(job(9), 1);
  wheel.was_thawed(job(9), 1);
  wheel.is_held(job(9), true, 1);
  wheel.is_empty(job(9), true, 1);
  wheel.is_gone(job(9), 1);
  wheel.gpu_is_idle(2);
  wheel.time_passed(2);
  EXPECT_EQ(wheel.take_action(), std::nullopt);
  EXPECT_EQ(wheel.wake_at(), 0);
}

// ---- worlds of all kinds

class RandomWheel : public ::testing::TestWithParam<std::uint64_t> {};

void disturb(World& world, base::Prng& prng, std::uint64_t jobs) {
  const model::AttemptId one = job(1 + prng.below(jobs));
  switch (prng.below(5)) {
    case 0:
      return world.thaw_from_outside(one);
    case 1:
      return world.hold(one, true);
    case 2:
      return world.hold(one, false);
    case 3:
      return world.empty(one, prng.below(2) == 0);
    default:
      world.freeze_time = 1 + static_cast<std::int64_t>(prng.below(3 * kMs));
  }
}

TEST_P(RandomWheel, NeverHasTwoAwakeAndForgetsNone) {
  base::Prng prng(GetParam());
  World world;
  const std::uint64_t jobs = 2 + prng.below(6);
  std::vector<TurnMember> members;
  for (std::uint64_t i = 1; i <= jobs; ++i) {
    members.push_back({job(i), static_cast<std::uint32_t>(1 + prng.below(7000))});
  }
  world.set(members);
  for (int i = 0; i < 300; ++i) {
    world.run_for(1 + static_cast<std::int64_t>(prng.below(3 * kSlice)));
    disturb(world, prng, jobs);
    EXPECT_EQ(world.overlaps, 0);
  }
  // Undisturbed again, each gets what its weight says.
  for (const TurnMember& member : members) {
    world.hold(member.attempt, false);
    world.empty(member.attempt, false);
  }
  world.run_for(100 * static_cast<std::int64_t>(jobs) * kSlice);
  world.awake_time.clear();
  world.run_for(1000 * static_cast<std::int64_t>(jobs) * kSlice);
  std::uint64_t weights = 0;
  for (const TurnMember& member : members) weights += member.weight;
  for (const TurnMember& member : members) {
    EXPECT_NEAR(world.share_of(member.attempt), double(member.weight) / double(weights), 0.01);
  }
  EXPECT_EQ(world.overlaps, 0);
  EXPECT_TRUE(world.told.empty());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomWheel, ::testing::Range<std::uint64_t>(1, 41));

}  // namespace
}  // namespace gpu_platform::node
