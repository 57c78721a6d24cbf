// What budgets have spent, to the millisecond, and what follows when they are spent.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/utc.h"
#include "controller/budget_use.h"
#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/judge/budgets.h"
#include "controller/test_support.h"
#include "model/access.h"

namespace gpu_platform::controller {
namespace {

using model::AttemptState;
using model::BudgetAct;
using model::BudgetLevel;
using model::JobState;
using model::QuotaHolder;
using testing::attempt;
using testing::kNoon;

constexpr base::MicroUsd kOne{1'000'000};

// An H100 costs 3.60 an hour: a thousandth in a second.
model::Policy policy_with(std::vector<model::Budget> budgets) {
  model::Policy policy;
  model::Billing billing;
  model::Price price;
  price.gpu_type = "H100";
  price.per_hour = base::MicroUsd(3'600'000);
  billing.prices = {price};
  policy.billing = billing;
  model::Organisation organisation;
  model::Team research;
  research.name = "research";
  model::Team vision;
  vision.name = "vision";
  vision.parent = "research";
  vision.members = {model::Member{"ann"}};
  organisation.teams = {research, vision};
  policy.organisation = organisation;
  policy.default_time_limit = base::hours(24 * 90);
  policy.max_time_limit = base::hours(24 * 365);
  policy.budgets = std::move(budgets);
  return policy;
}

model::Budget budget_of(QuotaHolder holder, std::string name, base::MicroUsd amount,
                        BudgetAct act) {
  model::Budget budget;
  budget.key = {holder, std::move(name)};
  budget.amount = amount;
  budget.act = act;
  return budget;
}

class BudgetTest : public ::testing::Test {
 protected:
  void begin(std::vector<model::Budget> budgets) {
    core_.apply_policy(policy_with(std::move(budgets)), "test", now_);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 4)}, now_);
  }
  std::uint64_t submit() {
    const auto reply = core_.command(testing::submission(testing::spec(1)), now_, kAmple);
    EXPECT_TRUE(reply) << reply.error().message;
    core_.advance(now_);
    return reply ? reply->job.value : 0;
  }
  std::uint64_t run() {
    const std::uint64_t id = submit();
    see(execution::Started{attempt(id), 5, now_});
    return id;
  }
  void end(std::uint64_t id) {
    see(testing::ended(attempt(id), 0, now_));
    see(execution::Cleaned{attempt(id)});
  }
  void see(const execution::Observation& observation) {
    core_.observe(observation, now_);
    advance_to(now_);
  }
  void advance_to(base::Instant at) {
    now_ = at;
    core_.advance(now_);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  const model::BudgetState& budget(QuotaHolder holder, const std::string& name) const {
    return core_.state().books->budgets->at({holder, name});
  }
  base::MicroUsd spent(QuotaHolder holder, const std::string& name) const {
    return spent_of(core_.state(), budget(holder, name), now_).floor();
  }
  JobState state_of(std::uint64_t id) const { return core_.state().jobs.find(id)->state; }
  std::optional<base::ErrorCode> refusal(model::Caller caller, auto body) {
    const auto reply = core_.command({std::move(caller), std::move(body)}, now_, kAmple);
    return reply ? std::nullopt : std::optional(reply.error().code);
  }

  static constexpr auto kAmple = store::Headroom::kAmple;
  base::Instant now_ = kNoon;
  Core core_;
};

TEST_F(BudgetTest, LevelsPassAtTheVeryMillisecond) {
  begin({budget_of(QuotaHolder::kTeam, "research", kOne, BudgetAct::kAlert)});
  run();
  ASSERT_EQ(next_budget_count(core_.state()), kNoon + base::seconds(800));
  advance_to(kNoon + base::milliseconds(799'999));
  EXPECT_EQ(budget(QuotaHolder::kTeam, "research").level, BudgetLevel::kWithin);
  advance_to(kNoon + base::seconds(800));
  EXPECT_EQ(budget(QuotaHolder::kTeam, "research").level, BudgetLevel::kNearly);
  EXPECT_EQ(budget(QuotaHolder::kTeam, "research").level_since, now_);
  EXPECT_EQ(budget(QuotaHolder::kTeam, "research").counted, base::MicroUsd(800'000));
  ASSERT_EQ(next_budget_count(core_.state()), kNoon + base::seconds(1000));
  advance_to(kNoon + base::seconds(1000));
  EXPECT_EQ(budget(QuotaHolder::kTeam, "research").level, BudgetLevel::kSpent);
}

TEST_F(BudgetTest, TwoJobsSpendTwiceAsFast) {
  begin({budget_of(QuotaHolder::kUser, "ann", kOne, BudgetAct::kAlert)});
  run();
  advance_to(kNoon + base::seconds(400));
  run();
  EXPECT_EQ(next_budget_count(core_.state()), kNoon + base::seconds(600));
  EXPECT_EQ(spent(QuotaHolder::kUser, "ann"), base::MicroUsd(400'000));
  advance_to(kNoon + base::seconds(500));
  EXPECT_EQ(spent(QuotaHolder::kUser, "ann"), base::MicroUsd(600'000));
}

TEST_F(BudgetTest, WhatIsOverStaysSpent) {
  begin({budget_of(QuotaHolder::kUser, "ann", kOne, BudgetAct::kAlert)});
  const std::uint64_t id = run();
  advance_to(kNoon + base::seconds(300));
  end(id);
  advance_to(kNoon + base::seconds(900));
  EXPECT_EQ(spent(QuotaHolder::kUser, "ann"), base::MicroUsd(300'000));
  EXPECT_EQ(accounting::ExactCost(budget(QuotaHolder::kUser, "ann").settled),
            accounting::ExactCost(base::MicroUsd(300'000)));
}

TEST_F(BudgetTest, ASpentBudgetBarsStartsUntilItRenews) {
  model::Budget budget = budget_of(QuotaHolder::kTeam, "vision", kOne, BudgetAct::kRefuse);
  begin({budget});
  const std::uint64_t first = run();
  advance_to(kNoon + base::seconds(1000));
  const std::uint64_t second = submit();
  EXPECT_EQ(state_of(first), JobState::kRunning);
  EXPECT_EQ(state_of(second), JobState::kQueued);
  end(first);
  EXPECT_EQ(state_of(second), JobState::kQueued);
  // November 2023 ends.
  const base::Instant renewal = base::parse_rfc3339("2023-12-01T00:00:00Z").value();
  EXPECT_EQ(next_budget_count(core_.state()), renewal);
  advance_to(renewal + base::milliseconds(-1));
  EXPECT_EQ(state_of(second), JobState::kQueued);
  advance_to(renewal);
  EXPECT_EQ(state_of(second), JobState::kStarting);
  EXPECT_EQ(this->budget(QuotaHolder::kTeam, "vision").settled, model::ExactAmount());
}

TEST_F(BudgetTest, OnlyTheUseOfThePresentPeriodCounts) {
  now_ = base::parse_rfc3339("2023-12-31T23:59:50Z").value();
  begin({budget_of(QuotaHolder::kUser, "ann", kOne, BudgetAct::kAlert)});
  const std::uint64_t id = run();
  advance_to(base::parse_rfc3339("2024-01-01T00:00:00Z").value());
  EXPECT_EQ(spent(QuotaHolder::kUser, "ann"), base::MicroUsd());
  advance_to(base::parse_rfc3339("2024-01-01T00:00:30Z").value());
  EXPECT_EQ(spent(QuotaHolder::kUser, "ann"), base::MicroUsd(30'000));
  end(id);
  EXPECT_EQ(spent(QuotaHolder::kUser, "ann"), base::MicroUsd(30'000));
}

TEST_F(BudgetTest, ABudgetThatStopsEndsWhatRuns) {
  begin({budget_of(QuotaHolder::kTeam, "research", kOne, BudgetAct::kStop)});
  const std::uint64_t id = run();
  advance_to(kNoon + base::seconds(999));
  EXPECT_EQ(state_of(id), JobState::kRunning);
  advance_to(kNoon + base::seconds(1000));
  const model::Attempt& attempt_now = core_.state().jobs.find(id)->attempts.back();
  EXPECT_EQ(attempt_now.state, AttemptState::kStopping);
  EXPECT_EQ(attempt_now.stop_reason, model::EndReason::kBudget);
  execution::Ended ended = testing::ended(attempt(id), 0, now_);
  ended.reason = model::EndReason::kBudget;
  see(ended);
  const model::Job& job = *core_.state().jobs.find(id);
  EXPECT_EQ(job.state, JobState::kTimedOut);
  EXPECT_EQ(job.reason, model::EndReason::kBudget);
  EXPECT_EQ(job.detail, "the budget of team research is spent");
}

TEST_F(BudgetTest, AnOverrideLetsJobsStartUntilItEnds) {
  begin({budget_of(QuotaHolder::kTeam, "vision", kOne, BudgetAct::kRefuse)});
  run();
  advance_to(kNoon + base::seconds(1000));
  const std::uint64_t second = submit();
  const model::BudgetKey key{QuotaHolder::kTeam, "vision"};
  const base::Instant until = now_ + base::hours(1);
  EXPECT_EQ(refusal(testing::kAdministrator, model::OverrideBudget{key, until, ""}),
            base::ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal(testing::kAdministrator, model::OverrideBudget{key, now_, "late"}),
            base::ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal(testing::kOwner, model::OverrideBudget{key, until, "please"}),
            base::ErrorCode::kPermissionDenied);
  EXPECT_EQ(refusal(testing::kAdministrator, model::OverrideBudget{key, until, "a deadline"}),
            std::nullopt);
  advance_to(now_);
  EXPECT_EQ(state_of(second), JobState::kStarting);
  EXPECT_TRUE(budget(QuotaHolder::kTeam, "vision").budget.set_by.empty());
  EXPECT_EQ(next_budget_count(core_.state()), until);
  advance_to(until);
  EXPECT_EQ(budget(QuotaHolder::kTeam, "vision").budget.over, model::BudgetOverride());
  EXPECT_EQ(state_of(submit()), JobState::kQueued);
}

TEST_F(BudgetTest, APolicyThatLowersABudgetBelowWhatIsSpentBarsAtOnce) {
  begin({budget_of(QuotaHolder::kUser, "ann", kOne, BudgetAct::kRefuse)});
  run();
  advance_to(kNoon + base::seconds(500));
  core_.apply_policy(policy_with({budget_of(QuotaHolder::kUser, "ann", base::MicroUsd(400'000),
                                            BudgetAct::kRefuse)}),
                     "test", now_);
  advance_to(now_);
  EXPECT_EQ(budget(QuotaHolder::kUser, "ann").level, BudgetLevel::kSpent);
  EXPECT_EQ(state_of(submit()), JobState::kQueued);
  core_.apply_policy(policy_with({}), "test", now_);
  advance_to(now_);
  EXPECT_TRUE(core_.state().books->budgets->empty());
  EXPECT_EQ(next_budget_count(core_.state()), std::nullopt);
}

// What is left lasts as long as it does at the new price.
TEST_F(BudgetTest, APolicyWithAnotherPriceMovesTheMomentsOfLevels) {
  const model::Budget budget = budget_of(QuotaHolder::kUser, "ann", kOne, BudgetAct::kAlert);
  begin({budget});
  run();
  advance_to(kNoon + base::seconds(400));
  model::Policy policy = policy_with({budget});
  model::Billing billing = *policy.billing;
  billing.prices[0].per_hour = billing.prices[0].per_hour * 2;
  policy.billing = billing;
  core_.apply_policy(policy, "test", now_);
  EXPECT_EQ(next_budget_count(core_.state()), kNoon + base::seconds(600));
  advance_to(kNoon + base::seconds(600));
  EXPECT_EQ(spent(QuotaHolder::kUser, "ann"), base::MicroUsd(800'000));
  EXPECT_EQ(this->budget(QuotaHolder::kUser, "ann").level, BudgetLevel::kNearly);
  billing.prices.clear();
  policy.billing = billing;
  core_.apply_policy(policy, "test", now_);
  EXPECT_EQ(next_budget_count(core_.state()), base::parse_rfc3339("2023-12-01T00:00:00Z").value());
}

TEST_F(BudgetTest, ARunThatHardwareEndedIsNotSpent) {
  begin({budget_of(QuotaHolder::kUser, "ann", kOne, BudgetAct::kAlert)});
  const std::uint64_t id = run();
  advance_to(kNoon + base::seconds(300));
  see(execution::NodeUnreachable{"n1", "no news"});
  ASSERT_TRUE(core_.state().held_attempts.contains(attempt(id)));
  EXPECT_EQ(spent(QuotaHolder::kUser, "ann"), base::MicroUsd());
  see(execution::NodeObserved{testing::node_info("n1", 4)});
  see(execution::Cleaned{attempt(id)});
  EXPECT_FALSE(core_.state().held_attempts.contains(attempt(id)));
  EXPECT_EQ(spent(QuotaHolder::kUser, "ann"), base::MicroUsd());
}

TEST_F(BudgetTest, RunTimeGoesBeforeTheConfigurationUntilItIsRemoved) {
  begin({budget_of(QuotaHolder::kUser, "ann", kOne, BudgetAct::kAlert)});
  run();
  advance_to(kNoon + base::seconds(100));
  const model::BudgetKey key{QuotaHolder::kUser, "ann"};
  EXPECT_EQ(refusal(testing::kOwner, model::SetBudget{.key = key, .amount = kOne * 2}),
            base::ErrorCode::kPermissionDenied);
  EXPECT_EQ(refusal(testing::kAdministrator, model::RemoveBudget{key}),
            base::ErrorCode::kFailedPrecondition);
  EXPECT_EQ(refusal(testing::kAdministrator, model::SetBudget{.key = key, .amount = kOne * 2}),
            std::nullopt);
  EXPECT_EQ(budget(QuotaHolder::kUser, "ann").budget.amount, kOne * 2);
  EXPECT_EQ(budget(QuotaHolder::kUser, "ann").budget.set_by, "root");
  EXPECT_EQ(next_budget_count(core_.state()), kNoon + base::seconds(1600));
  EXPECT_EQ(refusal(testing::kAdministrator, model::RemoveBudget{key}), std::nullopt);
  EXPECT_EQ(budget(QuotaHolder::kUser, "ann").budget.amount, kOne);
  EXPECT_EQ(spent(QuotaHolder::kUser, "ann"), base::MicroUsd(100'000));
}

TEST_F(BudgetTest, ANewBudgetNeedsAnAmountAndATeamThatIsThere) {
  begin({});
  const model::BudgetKey team{QuotaHolder::kTeam, "vison"};
  EXPECT_EQ(refusal(testing::kAdministrator, model::SetBudget{.key = team, .amount = kOne}),
            base::ErrorCode::kNotFound);
  const model::BudgetKey project{QuotaHolder::kProject, "demo"};
  EXPECT_EQ(refusal(testing::kAdministrator, model::SetBudget{.key = project}),
            base::ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal(testing::kAdministrator,
                    model::SetBudget{.key = project, .amount = base::MicroUsd()}),
            base::ErrorCode::kInvalidArgument);
  EXPECT_EQ(refusal(testing::kAdministrator, model::RemoveBudget{project}),
            base::ErrorCode::kNotFound);
}

TEST_F(BudgetTest, TheLevelGoesDownWithTheYear) {
  now_ = base::parse_rfc3339("2023-12-31T23:43:20Z").value();
  begin({budget_of(QuotaHolder::kUser, "ann", kOne, BudgetAct::kAlert)});
  run();
  const base::Instant year = base::parse_rfc3339("2024-01-01T00:00:00Z").value();
  advance_to(year + base::milliseconds(-1));
  EXPECT_EQ(budget(QuotaHolder::kUser, "ann").level, BudgetLevel::kNearly);
  EXPECT_EQ(next_budget_count(core_.state()), year) << "1.00 would be spent at that moment";
  advance_to(year);
  EXPECT_EQ(budget(QuotaHolder::kUser, "ann").level, BudgetLevel::kWithin);
  EXPECT_EQ(budget(QuotaHolder::kUser, "ann").period_begin, year);
  EXPECT_EQ(next_budget_count(core_.state()), year + base::seconds(800));
}

TEST_F(BudgetTest, TheJournalCountsTheSame) {
  begin({budget_of(QuotaHolder::kTeam, "research", kOne, BudgetAct::kRefuse)});
  const std::uint64_t id = run();
  advance_to(kNoon + base::seconds(900));
  const model::BudgetKey key{QuotaHolder::kTeam, "research"};
  EXPECT_EQ(refusal(testing::kAdministrator, model::SetBudget{.key = key, .amount = kOne * 3}),
            std::nullopt);
  end(id);
  Core replayed;
  for (const model::EventRecord& record : core_.take_batch().events) replayed.replay(record);
  EXPECT_EQ(state_hash(replayed.state()), state_hash(core_.state()));
  EXPECT_EQ(replayed.state().books->budgets, core_.state().books->budgets);
  EXPECT_EQ(spent_of(replayed.state(), replayed.state().books->budgets->at(key), now_).floor(),
            base::MicroUsd(900'000));
}

TEST_F(BudgetTest, ACoordinatorOverridesBelowItsTeamAlone) {
  begin({budget_of(QuotaHolder::kTeam, "vision", kOne, BudgetAct::kRefuse),
         budget_of(QuotaHolder::kTeam, "research", kOne, BudgetAct::kRefuse),
         budget_of(QuotaHolder::kUser, "vision", kOne, BudgetAct::kRefuse)});
  model::Teams teams;
  teams.coordinates = {"research", "vision"};
  model::Caller above = testing::kOwner;
  above.reach = model::Reach::kTeams;
  above.teams = std::make_shared<const model::Teams>(teams);
  teams.coordinates = {"vision"};
  model::Caller own = above;
  own.teams = std::make_shared<const model::Teams>(teams);
  const base::Instant until = now_ + base::hours(1);
  const auto overrides = [&](const model::Caller& caller, QuotaHolder holder, std::string name) {
    return refusal(caller, model::OverrideBudget{{holder, std::move(name)}, until, "a deadline"});
  };
  EXPECT_EQ(overrides(own, QuotaHolder::kTeam, "vision"), base::ErrorCode::kPermissionDenied);
  EXPECT_EQ(overrides(above, QuotaHolder::kTeam, "research"), base::ErrorCode::kPermissionDenied);
  EXPECT_EQ(overrides(above, QuotaHolder::kUser, "vision"), base::ErrorCode::kPermissionDenied)
      << "a user who is called like the team";
  EXPECT_EQ(overrides(above, QuotaHolder::kTeam, "vision"), std::nullopt);
  // A coordinator lowers the budget of the team, and raises none.
  const model::BudgetKey key{QuotaHolder::kTeam, "vision"};
  EXPECT_EQ(refusal(own, model::SetBudget{.key = key, .amount = kOne * 2}),
            base::ErrorCode::kPermissionDenied);
  EXPECT_EQ(refusal(own, model::SetBudget{.key = {QuotaHolder::kUser, "vision"}, .amount = kOne}),
            base::ErrorCode::kPermissionDenied);
  EXPECT_EQ(refusal(own, model::SetBudget{.key = key, .act = BudgetAct::kAlert}),
            base::ErrorCode::kPermissionDenied);
  EXPECT_EQ(refusal(own, model::SetBudget{.key = key, .amount = base::MicroUsd(1)}), std::nullopt);
}

TEST_F(BudgetTest, AnOverrideEndsNoLaterThanAShorterPeriod) {
  model::Budget of_year = budget_of(QuotaHolder::kUser, "ann", kOne, BudgetAct::kRefuse);
  of_year.period = model::BudgetPeriod::kYear;
  begin({of_year});
  const model::BudgetKey key{QuotaHolder::kUser, "ann"};
  const base::Instant until = base::parse_rfc3339("2023-12-20T00:00:00Z").value();
  EXPECT_EQ(refusal(testing::kAdministrator, model::OverrideBudget{key, until, "a deadline"}),
            std::nullopt);
  EXPECT_EQ(refusal(testing::kAdministrator,
                    model::SetBudget{.key = key, .period = model::BudgetPeriod::kMonth}),
            std::nullopt);
  EXPECT_EQ(budget(QuotaHolder::kUser, "ann").budget.over.until,
            base::parse_rfc3339("2023-12-01T00:00:00Z").value());
}

TEST_F(BudgetTest, ASnapshotKeepsWhatWasSpent) {
  begin({budget_of(QuotaHolder::kTeam, "research", kOne, BudgetAct::kRefuse)});
  run();
  advance_to(kNoon + base::seconds(850));
  auto read = decode_state(encode_state(core_.state()));
  ASSERT_TRUE(read) << read.error().message;
  rebuild_indices(*read);
  EXPECT_EQ(read->books->budgets, core_.state().books->budgets);
  EXPECT_EQ(read->budget_meters, core_.state().budget_meters);
  EXPECT_EQ(next_budget_count(*read), kNoon + base::seconds(1000));
}

}  // namespace
}  // namespace gpu_platform::controller
