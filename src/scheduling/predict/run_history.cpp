#include "scheduling/predict/run_history.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/hash.h"

namespace gpu_platform::scheduling {

namespace {

// The lengths come first, so that no name can be taken for a part of another.
std::string history_key(const model::JobSpec& spec, RunLevel level) {
  std::string key = fmt::format("{}:{}", spec.user.size(), spec.user);
  if (level == RunLevel::kSameUser) return key;
  key += fmt::format("/{}:{}", spec.name.size(), spec.name);
  if (level == RunLevel::kSameName) return key;
  key += fmt::format("/{}x{}", model::total_gpus(spec.request), spec.request.nodes);
  for (const std::string& type : spec.request.gpu_types) key += "," + type;
  return key;
}

std::uint64_t bucket_of(std::uint64_t hash) {
  return hash % RunHistory::kBuckets;
}

}  // namespace

std::string_view to_string(RunLevel level) {
  switch (level) {
    case RunLevel::kSameSize:
      return "size";
    case RunLevel::kSameName:
      return "name";
    case RunLevel::kSameUser:
      return "user";
  }
  CHECK(false);
  std::unreachable();
}

base::Duration at_full_speed(base::Duration run, std::uint32_t speed) {
  return base::Duration(run.value() / model::kFullSpeed * speed);
}

void RunHistory::add(const model::JobSpec& spec, base::Duration run) {
  for (std::size_t level = 0; level < kRunLevels; ++level) {
    std::string key = history_key(spec, static_cast<RunLevel>(level));
    const std::uint64_t number = bucket_of(base::hash64(key));
    Bucket* bucket = buckets_.find_mutable(number);
    if (bucket == nullptr) bucket = &buckets_.put(number, {});
    auto digest = std::ranges::find(*bucket, key, &Digest::key);
    if (digest == bucket->end()) {
      if (bucket->size() == kDigestsPerBucket) bucket->pop_back();
      bucket->push_back({std::move(key), {}});
      digest = bucket->end() - 1;
    }
    std::rotate(bucket->begin(), digest, digest + 1);
    std::vector<base::Duration>& runs = bucket->front().runs;
    if (runs.size() == kRunsKept) runs.erase(runs.begin());
    runs.push_back(run);
  }
}

const RunHistory::Digest* RunHistory::find(std::string_view key, std::uint64_t hash) const {
  const Bucket* bucket = buckets_.find(bucket_of(hash));
  if (bucket == nullptr) return nullptr;
  const auto digest = std::ranges::find(*bucket, key, &Digest::key);
  return digest == bucket->end() ? nullptr : &*digest;
}

std::optional<RunPrediction> RunHistory::predict(const model::JobSpec& spec,
                                                 base::Duration elapsed) const {
  for (std::size_t i = 0; i < kRunLevels; ++i) {
    const auto level = static_cast<RunLevel>(i);
    const std::string key = history_key(spec, level);
    const std::uint64_t hash = base::hash64(key);
    const Digest* digest = find(key, hash);
    if (digest == nullptr || digest->runs.size() < kFewestRuns) continue;
    std::vector<base::Duration> runs = digest->runs;
    std::erase_if(runs, [&](base::Duration run) { return run <= elapsed; });
    if (runs.empty()) return std::nullopt;
    std::ranges::sort(runs);
    return RunPrediction{quantile(runs, 50), quantile(runs, 90), level,
                         static_cast<std::uint32_t>(runs.size()), hash};
  }
  return std::nullopt;
}

RunHistory RunHistory::freeze() {
  RunHistory copy;
  copy.buckets_ = buckets_.freeze();
  return copy;
}

bool RunHistory::restore(std::uint64_t number, Bucket bucket) {
  if (number >= kBuckets || bucket.empty() || bucket.size() > kDigestsPerBucket) return false;
  for (const Digest& digest : bucket) {
    if (digest.runs.empty() || digest.runs.size() > kRunsKept) return false;
    if (bucket_of(base::hash64(digest.key)) != number) return false;
  }
  buckets_.put(number, std::move(bucket));
  return true;
}

std::optional<PredictedRun> predicted_run(const model::JobSpec& spec, base::Duration elapsed,
                                          const RunHistory& history) {
  using model::PredictionBasis;
  const base::Duration limit = spec.time_limit;
  if (spec.expected_time && *spec.expected_time > elapsed) {
    const base::Duration predicted = std::min(*spec.expected_time, limit);
    return PredictedRun{predicted, predicted, PredictionBasis::kExpectedTime, {}};
  }
  auto prediction = history.predict(spec, elapsed);
  if (!prediction) return std::nullopt;
  return PredictedRun{std::min(prediction->p50, limit), std::min(prediction->p90, limit),
                      PredictionBasis::kHistory, prediction};
}

}  // namespace gpu_platform::scheduling
