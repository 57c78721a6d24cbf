#include "scheduling/predict/run_history.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace gpu_platform::scheduling {
namespace {

model::JobSpec spec(std::string user, std::string name, std::uint32_t gpus = 1) {
  model::JobSpec spec;
  spec.user = std::move(user);
  spec.name = std::move(name);
  spec.request.gpus = gpus;
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
  RC_ASSERT(found->p90 == longer[(9 * longer.size() + 9) / 10 - 1]);
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
  EXPECT_EQ(level(spec("ann", "new", 1)), RunLevel::kSameUser);
  EXPECT_EQ(history.predict(spec("ann", "train", 1), {})->p50, base::minutes(60));
  EXPECT_EQ(history.predict(spec("ann", "new", 1), {})->p50, base::minutes(1));
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
  EXPECT_EQ(history.predict(spec("ann", "a"), {})->level, RunLevel::kSameUser);
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
  EXPECT_NE(history.predict(spec("ann", "job0"), {})->level, RunLevel::kSameSize);
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
