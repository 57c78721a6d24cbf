// What a job's own budget pays for: its attempts end when it is spent, whatever the prices do.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"
#include "model/access.h"

namespace gpu_platform::controller {
namespace {

class JobBudgetTest : public ::testing::Test {
 protected:
  static constexpr auto kRoomy = store::Headroom::kAmple;
  static constexpr base::MicroUsd kCoin{1'000'000};

  // An H100 costs 3.60 an hour, which is a thousandth in a second, and an L40S half of it.
  JobBudgetTest() {
    model::Policy policy;
    model::Billing billing;
    billing.prices = {price_of("H100", 3'600'000), price_of("L40S", 1'800'000)};
    policy.billing = billing;
    policy.default_time_limit = base::hours(24);
    policy.max_time_limit = base::hours(24 * 30);
    policy.retry_backoff = base::seconds(10);
    core_.apply_policy(policy, "test", now_);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 1)}, now_);
  }

  static model::Price price_of(std::string type, std::int64_t micros) {
    model::Price price;
    price.gpu_type = std::move(type);
    price.per_hour = base::MicroUsd(micros);
    return price;
  }
  void set_price(std::string type, std::int64_t micros) {
    model::SetPrice command{price_of(std::move(type), micros)};
    const auto reply = core_.command({testing::kAdministrator, std::move(command)}, now_, kRoomy);
    ASSERT_TRUE(reply) << reply.error().message;
    core_.advance(now_);
  }
  void add_node(const std::string& name, const std::string& type) {
    model::NodeInfo info = testing::node_info(name, 1);
    for (model::GpuInfo& gpu : info.gpus) gpu.type = type;
    core_.observe(execution::NodeObserved{info}, now_);
  }

  static model::JobSpec paid(std::optional<base::MicroUsd> budget, std::uint32_t gpus = 1) {
    model::JobSpec spec = testing::spec(gpus);
    spec.budget = budget;
    spec.retries = 3;
    return spec;
  }
  base::Result<model::CommandReply> try_to_submit(model::JobSpec spec) {
    auto reply = core_.command(testing::submission(std::move(spec)), now_, kRoomy);
    core_.advance(now_);
    return reply;
  }
  std::uint64_t submitted(model::JobSpec spec) {
    const auto reply = try_to_submit(std::move(spec));
    EXPECT_TRUE(reply) << reply.error().message;
    return reply ? reply->job.value : 0;
  }
  // The latest attempt is seen at once.
  std::uint64_t started(model::JobSpec spec) {
    const std::uint64_t id = submitted(std::move(spec));
    see(execution::Started{latest(id), 5, now_});
    return id;
  }
  model::AttemptId latest(std::uint64_t id) const {
    return testing::attempt(id, static_cast<std::uint32_t>(job(id).attempts.size()));
  }
  void fail(std::uint64_t id) {
    const model::AttemptId last = latest(id);
    see(testing::ended(last, 1, now_));
    see(execution::Cleaned{last});
  }
  void see(const execution::Observation& observation) {
    core_.observe(observation, now_);
    pass({});
  }
  void pass(base::Duration time) {
    now_ = now_ + time;
    core_.advance(now_);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  const model::Job& job(std::uint64_t id) const { return *core_.state().jobs.find(id); }
  std::optional<base::Duration> limit_of(std::uint64_t id) const {
    return job(id).attempts.back().limit_by_budget;
  }
  // The limits that the engine was ordered to keep, in their order.
  std::vector<base::Duration> ordered_limits() {
    std::vector<base::Duration> limits;
    for (const Effect& effect : core_.take_batch().effects) {
      if (const auto* start = std::get_if<execution::StartOrder>(&effect)) {
        limits.push_back(start->time_limit);
      }
      if (const auto* limit = std::get_if<execution::LimitOrder>(&effect)) {
        limits.push_back(limit->time_limit);
      }
    }
    return limits;
  }
  void change_budget(std::uint64_t id, std::optional<base::MicroUsd> budget) {
    model::UpdateJob update;
    update.job = model::JobId(id);
    update.to.set(&model::JobSpec::budget, budget);
    const auto reply = core_.command({testing::kOwner, std::move(update)}, now_, kRoomy);
    ASSERT_TRUE(reply) << reply.error().message;
    pass({});
  }

  base::Instant now_ = testing::kNoon;
  Core core_;
};

TEST_F(JobBudgetTest, AnAttemptEndsWhenItsBudgetIsSpent) {
  const std::uint64_t id = started(paid(kCoin));
  EXPECT_EQ(limit_of(id), base::seconds(1000));
  EXPECT_EQ(ordered_limits(), std::vector{base::seconds(1000)});
  pass(base::seconds(1000));
  execution::Ended ended = testing::ended(latest(id), 143, now_);
  ended.reason = model::EndReason::kTimeLimit;
  ended.time_limit = base::seconds(1000);
  see(ended);
  EXPECT_EQ(job(id).state, model::JobState::kTimedOut);
  EXPECT_EQ(job(id).reason, model::EndReason::kBudget);
  EXPECT_EQ(job(id).detail, "its budget of 1.00 is spent");
}

TEST_F(JobBudgetTest, ABudgetThatPaysForTheWholeLimitEndsNothing) {
  model::JobSpec spec = paid(kCoin * 100);
  spec.time_limit = base::hours(1);
  const std::uint64_t id = started(spec);
  EXPECT_EQ(ordered_limits(), std::vector{base::hours(1)});
  pass(base::hours(1));
  execution::Ended ended = testing::ended(latest(id), 143, now_);
  ended.reason = model::EndReason::kTimeLimit;
  ended.time_limit = base::hours(1);
  see(ended);
  EXPECT_EQ(job(id).reason, model::EndReason::kTimeLimit);
}

TEST_F(JobBudgetTest, RetriesGetWhatIsLeftAtThePricesOfTheirTime) {
  const std::uint64_t id = started(paid(kCoin));
  pass(base::seconds(400));
  fail(id);
  set_price("H100", 7'200'000);
  pass(base::minutes(5));
  ASSERT_EQ(job(id).attempts.size(), 2U);
  EXPECT_EQ(limit_of(id), base::seconds(300)) << "0.60 is left, at two thousandths a second";
  see(execution::Started{latest(id), 6, now_});
  pass(base::seconds(100));
  fail(id);
  pass(base::minutes(5));
  ASSERT_EQ(job(id).attempts.size(), 3U);
  EXPECT_EQ(limit_of(id), base::seconds(200));
}

TEST_F(JobBudgetTest, HardwareThatFailsCostsNothingOfIt) {
  const std::uint64_t id = started(paid(kCoin));
  pass(base::seconds(400));
  execution::Ended lost = testing::ended(latest(id), 0, now_);
  lost.exit = {};
  lost.exit.lost = model::Lost::kNodeLost;
  lost.reason = model::EndReason::kNodeLost;
  const model::AttemptId first = latest(id);
  see(lost);
  see(execution::Cleaned{first});
  pass(base::minutes(15));
  ASSERT_EQ(job(id).attempts.size(), 2U);
  EXPECT_EQ(limit_of(id), base::seconds(1000));
}

TEST_F(JobBudgetTest, AJobIsNotRunAgainForLessThanAMinute) {
  const std::uint64_t id = started(paid(kCoin));
  pass(base::seconds(980));
  see(testing::ended(latest(id), 1, now_));
  EXPECT_EQ(job(id).state, model::JobState::kTimedOut);
  EXPECT_EQ(job(id).reason, model::EndReason::kBudget);
  EXPECT_EQ(job(id).detail,
            "0.02 of its budget of 1.00 is left, which pays for less than a minute");
}

TEST_F(JobBudgetTest, AHigherPriceShortensTheLimitAndALowerOneKeepsIt) {
  const std::uint64_t id = started(paid(kCoin));
  pass(base::seconds(500));
  ordered_limits();
  set_price("H100", 7'200'000);
  EXPECT_EQ(limit_of(id), base::seconds(750)) << "0.50 is left, at two thousandths a second";
  EXPECT_EQ(ordered_limits(), std::vector{base::seconds(750)});
  pass(base::seconds(100));
  set_price("H100", 1'800'000);
  EXPECT_EQ(limit_of(id), base::seconds(750));
}

TEST_F(JobBudgetTest, APersonMayRaiseOrTakeBackTheBudgetOfARunningJob) {
  const std::uint64_t id = started(paid(kCoin));
  pass(base::seconds(500));
  ordered_limits();
  change_budget(id, kCoin * 2);
  EXPECT_EQ(limit_of(id), base::seconds(2000));
  EXPECT_EQ(ordered_limits(), std::vector{base::seconds(2000)});
  change_budget(id, std::nullopt);
  EXPECT_EQ(limit_of(id), std::nullopt);
  EXPECT_EQ(ordered_limits(), std::vector{base::hours(24)});
}

TEST_F(JobBudgetTest, IsRefusedIfTheDearestGpusGetLessThanAMinute) {
  add_node("n2", "L40S-48GB");
  const auto reply = try_to_submit(paid(base::MicroUsd(50'000)));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, base::ErrorCode::kFailedPrecondition);
  EXPECT_EQ(reply.error().field, "budget");
  EXPECT_EQ(reply.error().message,
            "budget 0.05: pays for less than a minute on H100-80GB; at least 0.06 is needed");
  model::JobSpec cheap = paid(base::MicroUsd(50'000));
  cheap.request.gpu_types = {"L40S-48GB"};
  EXPECT_EQ(limit_of(submitted(cheap)), base::seconds(100));
}

TEST_F(JobBudgetTest, IsRefusedForGpusWithoutAPrice) {
  add_node("n2", "A100-40GB");
  const auto reply = try_to_submit(paid(kCoin));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().field, "budget");
  EXPECT_NE(reply.error().message.find("GPUs of type A100-40GB have no price"), std::string::npos)
      << reply.error().message;
  EXPECT_TRUE(try_to_submit(paid(std::nullopt)));
}

TEST_F(JobBudgetTest, SetsNoLimitToWhatCostsNothing) {
  const std::uint64_t id = submitted(paid(base::MicroUsd(1), 0));
  EXPECT_EQ(limit_of(id), std::nullopt);
}

TEST_F(JobBudgetTest, AWaitingJobThatIsNotPaidForAnyMoreEndsInsteadOfStarting) {
  const std::uint64_t first = started(paid(std::nullopt));
  const std::uint64_t second = submitted(paid(base::MicroUsd(100'000)));
  ASSERT_EQ(job(second).state, model::JobState::kQueued);
  set_price("H100", 36'000'000);
  see(testing::ended(latest(first), 0, now_));
  see(execution::Cleaned{testing::attempt(first)});
  const std::vector<model::Job> ended = core_.take_batch().ended_jobs;
  const auto gone = std::ranges::find(ended, model::JobId(second), &model::Job::id);
  ASSERT_NE(gone, ended.end());
  EXPECT_EQ(gone->state, model::JobState::kCancelled);
  EXPECT_EQ(gone->reason, model::EndReason::kBudget);
  EXPECT_EQ(gone->detail,
            "0.10 of its budget of 0.10 is left, which pays for less than a minute on H100-80GB");
}

TEST_F(JobBudgetTest, TheJournalMakesTheSameLimits) {
  const std::uint64_t id = started(paid(kCoin));
  pass(base::seconds(500));
  set_price("H100", 7'200'000);
  Core replayed;
  for (const model::EventRecord& record : core_.take_batch().events) replayed.replay(record);
  EXPECT_EQ(state_hash(replayed.state()), state_hash(core_.state()));
  EXPECT_EQ(replayed.state().jobs.find(id)->attempts.back().limit_by_budget, base::seconds(750));
}

}  // namespace
}  // namespace gpu_platform::controller
