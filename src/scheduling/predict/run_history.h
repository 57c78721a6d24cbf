#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/persistent_map.h"
#include "base/units.h"
#include "model/job.h"

// How long jobs of one kind ran, to say how long the next will. After Tsafrir, Etsion and
// Feitelson, Backfilling Using System-Generated Predictions Rather than User Runtime Estimates,
// 2007, whose predictor is the mean of a user's last two runs; here quantiles of more of them, of
// the same name and size where there are enough.

namespace gpu_platform::scheduling {

// Whose runs a prediction is taken from: of the first of these that has enough.
enum class RunLevel : std::uint8_t {
  kSameSize,  // of the same user, job name, GPUs, nodes and types asked for
  kSameName,  // of the same user and job name
  kSameUser,  // of the same user
};
inline constexpr std::size_t kRunLevels = 3;
std::string_view to_string(RunLevel level);  // "size"

// What a run at that speed comes to at full speed (model::kFullSpeed).
base::Duration at_full_speed(base::Duration run, std::uint32_t speed);

// How long it runs from its start to its end, at full speed (model::kFullSpeed).
struct RunPrediction {
  base::Duration p50;
  base::Duration p90;
  RunLevel level = RunLevel::kSameSize;
  std::uint32_t runs = 0;    // that it was taken from
  std::uint64_t source = 0;  // names whose runs they are

  friend bool operator==(const RunPrediction&, const RunPrediction&) = default;
};

// Ownership: values; freeze() shares them. Thread: one writer, any number of readers of a frozen
// copy. Memory: at most kBuckets · kDigestsPerBucket digests of kRunsKept runs (about 2 MiB and the
// names). What was added to longest ago leaves a full bucket, so what is known depends on nothing
// but the runs and their order. Cost: a run is three buckets copied; a prediction three lookups.
class RunHistory {
 public:
  static constexpr std::size_t kRunsKept = 32;
  static constexpr std::size_t kFewestRuns = 3;  // to say anything
  static constexpr std::size_t kBuckets = 1024;
  static constexpr std::size_t kDigestsPerBucket = 8;

  struct Digest {
    std::string key;
    std::vector<base::Duration> runs;  // the oldest first
    friend bool operator==(const Digest&, const Digest&) = default;
  };
  using Bucket = std::vector<Digest>;  // the one added to last first

  // A run came to its end: `run` at full speed.
  void add(const model::JobSpec& spec, base::Duration run);

  // Of one that has run for `elapsed` already, at full speed: only longer runs count then. Nothing
  // where the first level with enough runs has none that long.
  std::optional<RunPrediction> predict(const model::JobSpec& spec, base::Duration elapsed) const;

  const base::PersistentMap<Bucket>& buckets() const { return buckets_; }
  RunHistory freeze();
  // As buckets() gave it; false for what no history has.
  bool restore(std::uint64_t number, Bucket bucket);

  friend bool operator==(const RunHistory&, const RunHistory&) = default;

 private:
  const Digest* find(std::string_view key, std::uint64_t hash) const;

  base::PersistentMap<Bucket> buckets_;  // by hash of the key
};

}  // namespace gpu_platform::scheduling
