#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/persistent_map.h"
#include "base/units.h"
#include "model/job.h"
#include "model/start_prediction.h"

// The run times of jobs of one kind, which predict the next one. After Tsafrir, Etsion and
// Feitelson, Backfilling Using System-Generated Predictions Rather than User Runtime Estimates,
// 2007. Their predictor is the mean of a user's last two runs; this one takes quantiles of more
// runs, and only of the same name or command: no prediction is better than one by unrelated jobs.
// Runs are compared by their time, or by the share of its time limit that each took: a user's
// limits may be honest where the run times differ.

namespace gpu_platform::scheduling {

// Returns the value that `percent` of 100 values do not exceed, by nearest rank: the ⌈percent · n /
// 100⌉-th of n, exact and always one of them. `ascending` is not empty; 1 <= percent <= 100.
inline base::Duration quantile(std::span<const base::Duration> ascending, std::size_t percent) {
  CHECK(!ascending.empty() && percent >= 1 && percent <= 100);
  const std::size_t rank = (percent * ascending.size() + 99) / 100;
  return ascending[rank - 1];
}

// Returns a value that the next one exceeds once in ten times: of n values the ⌈0.9 · (n + 1)⌉-th,
// which is exact for any distribution. Fewer than nine values have none. There it is as far
// beyond the largest as a normal distribution asks for: by 6 / n² of their range (Student's t:
// 0.63, 0.32, 0.18, 0.10 of it for 3, 4, 5, 6 values). Nothing for fewer than three.
std::optional<base::Duration> nine_in_ten(std::span<const base::Duration> ascending);

// The runs that a prediction is taken from: the first of these levels that has enough.
enum class RunLevel : std::uint8_t {
  kSameSize,     // of the same user, job name, GPUs, nodes and types asked for
  kSameName,     // of the same user and job name
  kSameCommand,  // of the same user and command, with any names
};
std::string_view to_string(RunLevel level);  // "size"

// What the runs of a level have in common, by which the next one is predicted.
enum class RunMeasure : std::uint8_t {
  kTime,            // they take as long
  kOfLimit,         // they take the same share of their time limits
  kOfExpectedTime,  // of their expected times
};
std::string_view to_string(RunMeasure measure);  // "time", "of_limit", "of_expected_time"

// Returns a run at that speed as a run at full speed (model::kFullSpeed).
base::Duration at_full_speed(base::Duration run, std::uint32_t speed);

// What nine in ten jobs are taken to keep within, in percent of their expected time, as long as no
// runs of its name or command say more.
inline constexpr std::int64_t kDefaultSpreadPercent = 150;

// The quantiles of the runs that a prediction was taken from, at full speed.
struct RunPrediction {
  base::Duration p50;
  base::Duration p90;  // not before p50; may be beyond the time limit
  RunLevel level = RunLevel::kSameSize;
  RunMeasure measure = RunMeasure::kTime;
  std::uint32_t runs = 0;    // the runs it was taken from
  std::uint64_t source = 0;  // names the bucket of these runs

  friend bool operator==(const RunPrediction&, const RunPrediction&) = default;
};

// Ownership: values; freeze() shares them. Thread: one writer, any number of readers of a frozen
// copy. Memory: at most kBuckets · kDigestsPerBucket digests of kRunsKept runs (about 6 MiB and the
// names). A full bucket drops the digest that was added to longest ago, so the content depends on
// nothing but the runs and their order. Cost: a run copies three buckets; a prediction is three
// lookups.
class RunHistory {
 public:
  static constexpr std::size_t kRunsKept = 32;
  static constexpr std::size_t kFewestRuns = 3;  // the fewest that allow a prediction
  static constexpr std::size_t kBuckets = 1024;
  static constexpr std::size_t kDigestsPerBucket = 8;

  // Shorter runs are mostly trials and failures to begin. They count only for jobs whose time limit
  // is no longer than this.
  static constexpr base::Duration kShortest = base::minutes(1);

  // A run at full speed, with the time limit and the expected time that its job had.
  struct Run {
    base::Duration time;
    base::Duration limit;     // zero: not known, because an older version kept the run
    base::Duration expected;  // zero: none
    friend bool operator==(const Run&, const Run&) = default;
  };
  struct Digest {
    std::string key;
    std::vector<Run> runs;  // the oldest first
    friend bool operator==(const Digest&, const Digest&) = default;
  };
  using Bucket = std::vector<Digest>;  // the one added to last comes first

  // Records a run that came to its end: `run` at full speed. Runs shorter than kShortest are left
  // out, unless the job's limit is that short.
  void add(const model::JobSpec& spec, base::Duration run);

  // Returns the prediction for a job that has run for `elapsed` already, at full speed: only longer
  // runs count then. Nothing if the first level with enough runs has none that long. Times or
  // shares of limits count, whichever are nearer to each other.
  std::optional<RunPrediction> predict(const model::JobSpec& spec, base::Duration elapsed) const;

  // The same by the shares that runs took of their expected times; by kDefaultSpreadPercent if
  // these are too few (`runs` is 0 then). The job has an expected time.
  std::optional<RunPrediction> predict_by_expected(const model::JobSpec& spec,
                                                   base::Duration elapsed) const;

  const base::PersistentMap<Bucket>& buckets() const { return buckets_; }
  RunHistory freeze();
  // Takes over what buckets() returned; false for values that no history has.
  bool restore(std::uint64_t number, Bucket bucket);

  friend bool operator==(const RunHistory&, const RunHistory&) = default;

 private:
  struct Level;

  const Digest* find(std::string_view key, std::uint64_t hash) const;
  // Returns what is kept of a level.
  Level level_of(const model::JobSpec& spec, RunLevel level) const;

  base::PersistentMap<Bucket> buckets_;  // by hash of the key
};

// The predicted run time of one job, from start to end, at full speed.
struct PredictedRun {
  base::Duration p50;
  base::Duration p90;
  model::PredictionBasis basis = model::PredictionBasis::kHistory;
  std::optional<RunPrediction> history;  // the runs that it was taken from; with an expected time
                                         // nothing if these are too few

  friend bool operator==(const PredictedRun&, const PredictedRun&) = default;
};

// Returns the prediction for a job that has run for `elapsed` at full speed: by the time that its
// user stated, as far as runs of its name or command kept to such times or, without any, half as
// long again, unless that is over; else by the runs of its name or command; else nothing. Never
// more than its time limit.
std::optional<PredictedRun> predicted_run(const model::JobSpec& spec, base::Duration elapsed,
                                          const RunHistory& history);

}  // namespace gpu_platform::scheduling
