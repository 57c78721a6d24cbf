#include "controller/retention.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "store/memory/memory_store.h"
#include "store/test_support.h"

// These tests check what is removed of ended jobs, and in which order.

namespace gpu_platform::controller {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

base::Instant second(std::int64_t number) {
  return base::Instant(number * kSecond);
}

std::vector<model::JobId> ids(std::initializer_list<std::uint64_t> numbers) {
  std::vector<model::JobId> found;
  for (const std::uint64_t number : numbers) found.emplace_back(number);
  return found;
}

class RetentionTest : public ::testing::Test {
 protected:
  // Job n ends at second n and has output.
  void end_jobs(std::uint64_t first, std::uint64_t last) {
    std::vector<model::Job> jobs;
    for (std::uint64_t id = first; id <= last; ++id) {
      model::Job job = store::JobBuilder(id);
      job.ended_at = second(static_cast<std::int64_t>(id));
      jobs.push_back(std::move(job));
      outputs_.insert(model::JobId(id));
    }
    const std::uint64_t seq = store_.last_seq().value + 1;
    ASSERT_TRUE(store::append_events(store_, seq, seq, jobs));
  }

  RetentionStep step(std::int64_t now) {
    auto step = retention_.step(policy_, second(now));
    EXPECT_TRUE(step);
    return step ? *std::move(step) : RetentionStep();
  }

  // Carries out steps until one has nothing to do; returns the number of steps that had.
  int carry_out(std::int64_t now) {
    for (int steps = 0; steps < 1'000; ++steps) {
      const RetentionStep next = step(now);
      if (next.outputs.empty() && next.jobs.empty() && !next.has_more) return steps;
      for (const model::JobId job : next.outputs) outputs_.erase(job);
      for (const model::JobId job : next.jobs) EXPECT_FALSE(outputs_.contains(job)) << job.value;
      EXPECT_TRUE(store_.drop_jobs(next.jobs));
    }
    ADD_FAILURE() << "it does not end";
    return 0;
  }

  std::uint64_t first_job() const {
    const auto endings = store_.endings({}, 1);
    return endings && !endings->empty() ? endings->front().job.value : 0;
  }
  std::uint64_t first_output() const { return outputs_.empty() ? 0 : outputs_.begin()->value; }

  store::MemoryStore store_;
  std::set<model::JobId> outputs_;
  model::Policy policy_;
  Retention retention_{store_, [this](model::JobId job) { return outputs_.contains(job); }};
};

TEST_F(RetentionTest, WithoutAPolicyEverythingStays) {
  end_jobs(1, 200);
  EXPECT_EQ(carry_out(1'000'000'000), 0);
  EXPECT_EQ(outputs_.size(), 200u);
  EXPECT_EQ(store_.job_count(), 200u);
}

TEST_F(RetentionTest, OutputGoesWhenItsTimeIsOverAndTheJobStays) {
  end_jobs(1, 200);
  policy_.output_keep = base::seconds(100);
  carry_out(250);
  EXPECT_EQ(first_output(), 150u) << "what ended 100 seconds ago is kept";
  EXPECT_EQ(store_.job_count(), 200u);
  end_jobs(201, 201);
  carry_out(301);
  EXPECT_EQ(first_output(), 201u);
}

TEST_F(RetentionTest, JobsLeaveTheHistoryWithTheirOutput) {
  end_jobs(1, 200);
  policy_.job_keep = base::seconds(100);
  const RetentionStep first = step(102);
  EXPECT_EQ(first.outputs, ids({1}));
  EXPECT_TRUE(first.jobs.empty()) << "its output is still there";
  EXPECT_EQ(step(102).outputs, ids({1})) << "it is named again until it is gone";
  outputs_.erase(model::JobId(1));
  EXPECT_EQ(step(102).jobs, ids({1}));
  carry_out(250);
  EXPECT_EQ(first_job(), 150u);
  EXPECT_EQ(first_output(), 150u);
}

TEST_F(RetentionTest, TheOldestGoWhereThereAreTooMany) {
  end_jobs(1, 200);
  policy_.max_ended_jobs = 30;
  carry_out(201);
  EXPECT_EQ(store_.job_count(), 30u);
  EXPECT_EQ(first_job(), 171u);
  EXPECT_EQ(first_output(), 171u);
}

TEST_F(RetentionTest, ThoseWhoseTimeIsOverCountAmongTheTooMany) {
  end_jobs(1, 103);
  policy_.max_ended_jobs = 100;
  policy_.job_keep = base::seconds(100);
  carry_out(103);  // 1 and 2 are over by their time, and three are too many
  EXPECT_EQ(store_.job_count(), 100u);
  EXPECT_EQ(first_job(), 4u);
}

TEST_F(RetentionTest, OutputThatCannotBeRemovedKeepsItsJobAndNoOther) {
  end_jobs(1, 3);
  policy_.job_keep = base::seconds(100);
  outputs_ = {model::JobId(2)};
  EXPECT_EQ(step(500).jobs, ids({1, 3}));
  EXPECT_EQ(step(500).outputs, ids({2}));
}

TEST_F(RetentionTest, AStepIsBoundedAndAJobIsNamedOnceInIt) {
  end_jobs(1, 500);
  policy_.output_keep = base::seconds(1);
  policy_.job_keep = base::seconds(1);
  const RetentionStep bounded = step(1'000);
  EXPECT_EQ(bounded.outputs.size(), Retention::kJobsPerStep);
  EXPECT_TRUE(bounded.jobs.empty());
  EXPECT_LE(carry_out(1'000), 3 * 500 / static_cast<int>(Retention::kJobsPerStep) + 3);
  EXPECT_EQ(store_.job_count(), 0u);
  EXPECT_TRUE(outputs_.empty());
}

// A launcher that removes output a moment after it was asked.
TEST_F(RetentionTest, HundredsOfJobsWithOutputLeaveEachSecond) {
  constexpr std::uint64_t kJobs = 4'000;
  end_jobs(1, kJobs);
  policy_.job_keep = base::seconds(1);
  RetentionPace pace;
  base::Instant now = second(10'000);
  const base::Instant begin = now;
  const base::Duration removal = base::milliseconds(15);
  std::vector<model::JobId> asked;
  base::Instant removed_at;
  while (store_.job_count().value() != 0 && now < begin + base::seconds(60)) {
    if (now >= removed_at) {
      for (const model::JobId job : asked) outputs_.erase(job);
    }
    auto next = retention_.step(policy_, now);
    ASSERT_TRUE(next);
    const RetentionPace::Turn turn = pace.after(*next, now);
    EXPECT_FALSE(turn.is_stuck);
    if (turn.asks) {
      asked = next->outputs;
      removed_at = now + removal;
    }
    ASSERT_TRUE(store_.drop_jobs(next->jobs));
    now = now + turn.pause;
  }
  EXPECT_EQ(store_.job_count(), 0u);
  EXPECT_LT((now - begin).value(), base::seconds(kJobs / 200).value());
}

TEST_F(RetentionTest, OutputThatStaysIsAskedForLessAndLessAndSaidOnce) {
  end_jobs(1, 70);
  policy_.job_keep = base::seconds(1);
  outputs_ = {model::JobId(2)};
  RetentionPace pace;
  base::Instant now = second(10'000);
  const base::Instant end = now + base::minutes(2);
  int asks = 0;
  int told = 0;
  while (now < end) {
    auto next = retention_.step(policy_, now);
    ASSERT_TRUE(next);
    const RetentionPace::Turn turn = pace.after(*next, now);
    asks += turn.asks ? 1 : 0;
    told += turn.is_stuck ? 1 : 0;
    ASSERT_TRUE(store_.drop_jobs(next->jobs));
    now = now + turn.pause;
  }
  EXPECT_EQ(store_.job_count(), 1u) << "the others are gone";
  EXPECT_EQ(told, 1);
  EXPECT_LT(asks, 80);
  EXPECT_GT(asks, 40);
}

}  // namespace
}  // namespace gpu_platform::controller
