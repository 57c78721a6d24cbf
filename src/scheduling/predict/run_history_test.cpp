#include "scheduling/predict/run_history.h"
#include "model/job_spec.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace gpu_platform::scheduling {
namespace {

model::JobSpec spec(std::string user, std::string name, std::uint32_t gpus = 1) {
  model::JobSpec spec;
  spec.command = {"python3", name + ".py"};
  spec.user = std::move(user);
  spec.name = std::move(name);
  spec.request.gpus = gpus;
  spec.time_limit = base::hours(2);
  return spec;
}

void add(RunHistory& history, const model::JobSpec& spec, std::initializer_list<int> minutes) {
  for (const int each : minutes) history.add(spec, base::minutes(each));
}

RC_GTEST_PROP(Quantile, IsTheSmallestThatSoManyDoNotPass, ()) {
  auto values = *rc::gen::nonEmpty<std::vector<std::int64_t>>();
  const auto percent = *rc::gen::inRange<std::size_t>(1, 101);
  std::ranges::sort(values);
  std::vector<base::Duration> durations;
  for (const std::int64_t value : values) durations.emplace_back(value);
  const base::Duration found = quantile(durations, percent);
  const auto up_to = [&](auto passes) {
    return static_cast<std::size_t>(std::ranges::count_if(durations, passes));
  };
  const std::size_t below = up_to([&](base::Duration each) { return each < found; });
  const std::size_t at_most = up_to([&](base::Duration each) { return each <= found; });
  RC_ASSERT(below * 100 < percent * durations.size());
  RC_ASSERT(at_most * 100 >= percent * durations.size());
}

// Against all runs, kept and sorted.
RC_GTEST_PROP(RunHistory, PredictsByTheLastRunsThatAreLongEnough, ()) {
  const auto runs = *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 100));
  const base::Duration limit = spec("ann", "train").time_limit;
  const auto elapsed = base::minutes(*rc::gen::inRange(0, 110));
  RunHistory history;
  for (const int each : runs) history.add(spec("ann", "train"), base::minutes(each));
  std::vector<base::Duration> longer;
  const std::size_t kept = std::min(runs.size(), RunHistory::kRunsKept);
  for (std::size_t i = runs.size() - kept; i < runs.size(); ++i) {
    if (base::minutes(runs[i]) > elapsed) longer.push_back(base::minutes(runs[i]));
  }
  std::ranges::sort(longer);
  const auto found = history.predict(spec("ann", "train"), elapsed);
  RC_ASSERT(found.has_value() == (runs.size() >= RunHistory::kFewestRuns && !longer.empty()));
  if (!found) return;
  RC_ASSERT(found->runs == longer.size());
  RC_ASSERT(found->p50 == longer[(longer.size() + 1) / 2 - 1]);
  // One in ten is longer than so many of the others.
  if (longer.size() >= 9) {
    const auto within = std::ranges::count_if(longer, [&](auto run) { return run <= found->p90; });
    RC_ASSERT(10 * static_cast<std::size_t>(within) >= 9 * (longer.size() + 1));
    RC_ASSERT(std::ranges::count(longer, found->p90) > 0);
  } else {
    RC_ASSERT(found->p90 >= longer.back());
    if (longer.size() < 3) RC_ASSERT(found->p90 == limit);
  }
  RC_ASSERT(found->p50 > elapsed);
}

TEST(RunHistory, SaysNothingOfTooFewRuns) {
  RunHistory history;
  add(history, spec("ann", "train"), {5, 6});
  EXPECT_FALSE(history.predict(spec("ann", "train"), {}));
  EXPECT_FALSE(history.predict(spec("bob", "train"), {}));
}

TEST(RunHistory, TakesTheNearestOfItsLike) {
  RunHistory history;
  add(history, spec("ann", "train", 8), {60, 60, 60});
  add(history, spec("ann", "train", 1), {10, 10});
  add(history, spec("ann", "test", 1), {1, 1, 1, 1, 1});
  const auto level = [&](const model::JobSpec& job) { return history.predict(job, {})->level; };
  EXPECT_EQ(level(spec("ann", "train", 8)), RunLevel::kSameSize);
  EXPECT_EQ(level(spec("ann", "train", 1)), RunLevel::kSameName);
  EXPECT_FALSE(history.predict(spec("ann", "new", 1), {})) << "no run of that name or command";
  EXPECT_EQ(history.predict(spec("ann", "train", 1), {})->p50, base::minutes(60));
  model::JobSpec renamed = spec("ann", "test", 1);
  renamed.name = "new";
  EXPECT_EQ(level(renamed), RunLevel::kSameCommand);
  EXPECT_EQ(history.predict(renamed, {})->p50, base::minutes(1));
  renamed.user = "bob";
  EXPECT_FALSE(history.predict(renamed, {}));
}

// "python3" is the name of all jobs of python3 that have none.
TEST(RunHistory, AJobWithoutANameOfItsOwnIsComparedByItsCommand) {
  RunHistory history;
  model::JobSpec job = spec("ann", "python3");
  job.command = {"/usr/bin/python3", "train.py"};
  add(history, job, {10, 20, 30});
  EXPECT_EQ(history.predict(job, {})->level, RunLevel::kSameSize);
  job.request.gpus = 4;
  EXPECT_EQ(history.predict(job, {})->level, RunLevel::kSameCommand);
  EXPECT_EQ(history.predict(job, {})->runs, 3U);
  job.command = {"/usr/bin/python3", "finetune.py"};
  EXPECT_FALSE(history.predict(job, {}));
}

// A limit of ten minutes is kept as honestly as one of ten hours.
TEST(RunHistory, AJobWithoutRunsOfItsNameIsPredictedByThoseOfItsCommand) {
  RunHistory history;
  for (const int minutes : {10, 20, 30, 60, 90, 100, 300, 400, 500, 600}) {
    model::JobSpec job = spec("ann", "train");
    job.name = "run-" + std::to_string(minutes);
    job.time_limit = base::minutes(minutes);
    history.add(job, base::Duration(job.time_limit.value() / 100 * (80 + minutes % 7)));
  }
  model::JobSpec job = spec("ann", "train");
  job.name = "new";
  job.time_limit = base::hours(1);
  const auto found = history.predict(job, {});
  EXPECT_EQ(found->level, RunLevel::kSameCommand);
  EXPECT_EQ(found->measure, RunMeasure::kOfLimit);
  EXPECT_GE(found->p50, base::minutes(48));
  EXPECT_LE(found->p90, base::minutes(52));
}

TEST(RunHistory, RunsOfOneNameAreComparedByWhatTheyHaveInCommon) {
  RunHistory history;
  model::JobSpec job = spec("ann", "train");
  for (const int minutes : {10, 60, 300}) {
    job.time_limit = base::minutes(minutes);
    history.add(job, base::Duration(job.time_limit.value() / 10 * 9));
  }
  job.time_limit = base::minutes(100);
  EXPECT_EQ(history.predict(job, {})->measure, RunMeasure::kOfLimit);
  EXPECT_EQ(history.predict(job, {})->p90, base::minutes(90));
  model::JobSpec steady = spec("bob", "train");
  for (const int hours : {1, 8, 24}) {
    steady.time_limit = base::hours(hours);
    history.add(steady, base::minutes(30));
  }
  EXPECT_EQ(history.predict(steady, {})->measure, RunMeasure::kTime);
  EXPECT_EQ(history.predict(steady, {})->p90, base::minutes(30));
}

// What was stopped at its limit took all of it: not less, and not the grace.
TEST(RunHistory, ARunThatMetItsLimitTookAllOfIt) {
  RunHistory history;
  model::JobSpec job = spec("ann", "train");
  job.time_limit = base::minutes(10);
  for (int i = 0; i < 3; ++i) history.add(job, base::minutes(11));
  EXPECT_EQ(history.predict(job, {})->p90, base::minutes(10));
}

TEST(RunHistory, RunsOfSecondsCountOnlyForJobsWithLimitsOfSeconds) {
  RunHistory history;
  for (int i = 0; i < 16; ++i) history.add(spec("ann", "test"), base::seconds(2));
  EXPECT_FALSE(history.predict(spec("ann", "finetune-70b"), {}));
  EXPECT_FALSE(history.predict(spec("ann", "test"), {}));
  model::JobSpec short_one = spec("ann", "test");
  short_one.time_limit = base::minutes(1);
  for (int i = 0; i < 16; ++i) history.add(short_one, base::seconds(2));
  EXPECT_EQ(history.predict(short_one, {})->p90, base::seconds(2));
  EXPECT_FALSE(history.predict(spec("ann", "test"), {})) << "it asks for hours";
}

TEST(RunHistory, RunsOfSecondsThatAnOlderVersionKeptDoNotCount) {
  RunHistory history;
  add(history, spec("ann", "train"), {10, 20, 30});
  RunHistory older;
  history.buckets().for_each([&](std::uint64_t number, RunHistory::Bucket bucket) {
    for (RunHistory::Digest& digest : bucket) digest.runs.front().time = base::seconds(5);
    EXPECT_TRUE(older.restore(number, std::move(bucket)));
  });
  EXPECT_FALSE(older.predict(spec("ann", "train"), {}));
}

TEST(RunHistory, RunsThatAnOlderVersionKeptHaveTimesOnly) {
  RunHistory history;
  add(history, spec("ann", "train"), {10, 20, 30});
  RunHistory older;
  history.buckets().for_each([&](std::uint64_t number, RunHistory::Bucket bucket) {
    for (RunHistory::Digest& digest : bucket) {
      for (RunHistory::Run& run : digest.runs) run.limit = {};
    }
    EXPECT_TRUE(older.restore(number, std::move(bucket)));
  });
  EXPECT_EQ(older.predict(spec("ann", "train"), {})->p50, base::minutes(20));
  EXPECT_FALSE(older.predict(spec("ann", "new"), {}));
}

TEST(ExpectedTime, IsSpreadAsRunsOfTheCommandKeptToTheirs) {
  RunHistory history;
  model::JobSpec job = spec("ann", "a");
  job.time_limit = base::hours(10);
  job.expected_time = base::hours(1);
  const PredictedRun first = *predicted_run(job, {}, history);
  EXPECT_EQ(first.p50, base::hours(1));
  EXPECT_EQ(first.p90, base::minutes(90));
  EXPECT_FALSE(first.history);
  EXPECT_FALSE(predicted_run(job, base::hours(1), history));
  // This user is too hopeful by half to twice as much.
  for (const int percent : {150, 160, 170, 180, 190, 200, 210, 220, 230}) {
    history.add(job, base::minutes(percent * 60 / 100));
  }
  model::JobSpec other = spec("ann", "a");
  other.name = "b";
  other.time_limit = base::hours(10);
  other.expected_time = base::minutes(100);
  const PredictedRun learned = *predicted_run(other, {}, history);
  EXPECT_EQ(learned.basis, model::PredictionBasis::kExpectedTime);
  EXPECT_EQ(learned.p50, base::minutes(190));
  EXPECT_EQ(learned.p90, base::minutes(230));
  EXPECT_EQ(learned.history->measure, RunMeasure::kOfExpectedTime);
  // After two hours only the longer ones count.
  EXPECT_EQ(predicted_run(other, base::minutes(200), history)->p50, base::minutes(220));
}

TEST(NineInTen, IsBeyondTheLargestOfAFew) {
  const auto found = [](std::initializer_list<int> minutes) {
    std::vector<base::Duration> values;
    for (const int each : minutes) values.push_back(base::minutes(each));
    return nine_in_ten(values);
  };
  EXPECT_FALSE(found({10, 20}));
  EXPECT_EQ(found({10, 15, 19}), base::minutes(25));
  EXPECT_EQ(found({5, 5, 5}), base::minutes(5));
  EXPECT_EQ(found({1, 2, 3, 4, 5, 6, 7, 8, 9}), base::minutes(9));
  EXPECT_EQ(found({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}),
            base::minutes(18));
}

TEST(RunHistory, TypesAskedForTellSizesApart) {
  RunHistory history;
  model::JobSpec slow = spec("ann", "train");
  slow.request.gpu_types = {"T4"};
  add(history, slow, {30, 30, 30});
  EXPECT_EQ(history.predict(slow, {})->level, RunLevel::kSameSize);
  EXPECT_EQ(history.predict(spec("ann", "train"), {})->level, RunLevel::kSameName);
}

TEST(RunHistory, AJobThatHasRunLongerThanAllOfThemIsNotPredicted) {
  RunHistory history;
  add(history, spec("ann", "train"), {10, 20, 30});
  EXPECT_FALSE(history.predict(spec("ann", "train"), base::minutes(30)));
}

TEST(RunHistory, NamesThatTouchAreNotMixed) {
  RunHistory history;
  add(history, spec("ann", "a/1:b"), {10, 10, 10});
  EXPECT_FALSE(history.predict(spec("ann", "a"), {}));
  EXPECT_FALSE(history.predict(spec("ann/1:a", ""), {}));
}

TEST(RunHistory, IsBoundedAndForgetsTheOldest) {
  RunHistory history;
  constexpr int kNames = 30'000;
  for (int i = 0; i < kNames; ++i) {
    for (int run = 0; run < 3; ++run) {
      history.add(spec("ann", "job" + std::to_string(i)), base::minutes(i % 50 + 1));
    }
  }
  std::size_t digests = 0;
  history.buckets().for_each(
      [&](std::uint64_t, const RunHistory::Bucket& bucket) { digests += bucket.size(); });
  EXPECT_LE(digests, RunHistory::kBuckets * RunHistory::kDigestsPerBucket);
  const auto last = history.predict(spec("ann", "job" + std::to_string(kNames - 1)), {});
  EXPECT_EQ(last->level, RunLevel::kSameSize);
  EXPECT_FALSE(history.predict(spec("ann", "job0"), {}));
}

TEST(RunHistory, AFrozenCopyStaysAsItIs) {
  RunHistory history;
  add(history, spec("ann", "train"), {10, 10, 10});
  const RunHistory frozen = history.freeze();
  add(history, spec("ann", "train"), {50, 50, 50, 50});
  EXPECT_EQ(frozen.predict(spec("ann", "train"), {})->p50, base::minutes(10));
  EXPECT_EQ(history.predict(spec("ann", "train"), {})->p50, base::minutes(50));
}

TEST(RunHistory, IsRestoredFromItsBucketsAndFromNothingElse) {
  RunHistory history;
  add(history, spec("ann", "train"), {10, 20});
  RunHistory again;
  history.buckets().for_each([&](std::uint64_t number, const RunHistory::Bucket& bucket) {
    EXPECT_TRUE(again.restore(number, bucket));
    EXPECT_FALSE(again.restore((number + 1) % RunHistory::kBuckets, bucket));
  });
  EXPECT_EQ(again, history);
  EXPECT_FALSE(again.restore(RunHistory::kBuckets, {}));
}

}  // namespace
}  // namespace gpu_platform::scheduling
