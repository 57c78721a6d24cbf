#include "scheduling/predict/predicted_starts.h"

#include <vector>

#include <gtest/gtest.h>

#include "model/job_spec.h"
#include "scheduling/placement/place.h"
#include "scheduling/testing/world.h"
#include "scheduling/trial.h"

namespace gpu_platform::scheduling {
namespace {

WaitingJob waiting_for(std::uint64_t id, base::Duration limit,
                       std::optional<base::Duration> predicted = {}) {
  WaitingJob job = waiting(id, gpus(1), 5, static_cast<std::int64_t>(id));
  auto spec = std::make_shared<model::JobSpec>(*job.spec);
  spec->user = "ann";
  spec->name = "job";
  spec->time_limit = limit;
  spec->expected_time = predicted;
  job.spec = std::move(spec);
  return job;
}

// One GPU, on which job 1 began to run `ago`; its limit is an hour.
class PredictedStartsTest : public ::testing::Test {
 protected:
  PredictedStartsTest() { policy_.stop_grace = base::minutes(1); }

  PredictedStarts prediction(base::Duration ago, const std::vector<WaitingJob>& waiting) {
    Books books({.history = history_,
                 .cluster = cluster_of({node(1).gpus(1).busy(0)}),
                 .queue = WaitingQueue(OrderBasis::of(policy_))});
    const std::uint64_t before = books->cluster.hash();
    allocation_.nodes = {{model::NodeId(1), {{0, base::kWholeGpu, base::kGiB * 80}}, 1, {}, {}}};
    const base::Instant since = kNow + (base::Duration() - ago);
    const std::vector<RunningJob> running = {{{model::JobId(1), 1},
                                              first_.spec.get(),
                                              &allocation_,
                                              since,
                                              since + first_.spec->time_limit}};
    const CycleOptions options{.now = kNow};
    const PredictedStarts found = predict_starts({books, policy_, options, running, waiting});
    EXPECT_EQ(books->cluster.hash(), before);
    return found;
  }
  void ran(std::initializer_list<int> minutes) {
    for (const int each : minutes) history_.add(*first_.spec, base::minutes(each));
  }

  model::Policy policy_;
  RunHistory history_;
  model::Allocation allocation_;
  WaitingJob first_ = waiting_for(1, base::hours(1));
};

TEST_F(PredictedStartsTest, WithoutAHistoryItSaysNothing) {
  const PredictedStarts found = prediction({}, {waiting_for(2, base::hours(1))});
  EXPECT_EQ(found.basis, model::PredictionBasis::kHardLimits);
  EXPECT_TRUE(found.starts.empty());
}

TEST_F(PredictedStartsTest, WhoHasAHistoryEndsByItWithoutTheGrace) {
  ran({10, 20, 30});
  const PredictedStarts found = prediction(base::minutes(5), {waiting_for(2, base::hours(1))});
  EXPECT_EQ(found.basis, model::PredictionBasis::kHistory);
  EXPECT_EQ(found.runs, 3U);
  EXPECT_EQ(found.starts.at(model::JobId(2)).p50, kNow + base::minutes(15));
  EXPECT_EQ(found.starts.at(model::JobId(2)).p90, kNow + base::minutes(25) + base::seconds(800));
}

TEST_F(PredictedStartsTest, WhoHasOutrunItsHistoryEndsByItsLimitAndTheGrace) {
  ran({10, 20, 30});
  const WaitingJob second = waiting_for(2, base::hours(1));
  EXPECT_TRUE(prediction(base::minutes(40), {second}).starts.empty());
  const PredictedStarts found =
      prediction(base::minutes(40), {second, waiting_for(3, base::hours(1))});
  EXPECT_EQ(found.starts.at(model::JobId(2)).p90, kNow + base::minutes(21));
}

TEST_F(PredictedStartsTest, ThoseBeforeItHoldTheirPlacesForAsLongAsIsExpected) {
  first_ = waiting_for(1, base::hours(1), base::minutes(30));
  const PredictedStarts found = prediction(
      base::minutes(10),
      {waiting_for(2, base::hours(1), base::minutes(15)), waiting_for(3, base::hours(1))});
  EXPECT_EQ(found.basis, model::PredictionBasis::kExpectedTime);
  EXPECT_EQ(found.starts.at(model::JobId(2)).p50, kNow + base::minutes(20));
  EXPECT_EQ(found.starts.at(model::JobId(3)).p50, kNow + base::minutes(35));
  // Half as long again, each of them.
  EXPECT_EQ(found.starts.at(model::JobId(3)).p90, kNow + base::seconds(35 * 60 + 22 * 60 + 30));
}

TEST_F(PredictedStartsTest, NoJobIsPredictedToRunLongerThanItsLimit) {
  ran({50, 55, 60});
  const model::JobSpec spec = *waiting_for(2, base::minutes(40)).spec;
  EXPECT_EQ(predicted_run(spec, {}, history_)->p90, base::minutes(40));
}

TEST_F(PredictedStartsTest, WhatItsUserSaysGoesBeforeTheHistoryUntilItIsOver) {
  ran({10, 20, 30});
  const model::JobSpec spec = *waiting_for(2, base::hours(1), base::minutes(15)).spec;
  EXPECT_EQ(predicted_run(spec, {}, history_)->basis, model::PredictionBasis::kExpectedTime);
  EXPECT_EQ(predicted_run(spec, base::minutes(15), history_)->p50, base::minutes(20));
}

}  // namespace
}  // namespace gpu_platform::scheduling
