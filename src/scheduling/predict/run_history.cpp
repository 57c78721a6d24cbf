#include "scheduling/predict/run_history.h"

#include <algorithm>
#include <compare>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/hash.h"
#include "model/job_spec.h"

namespace gpu_platform::scheduling {

namespace {

// Returns false for a job whose name says no more than its program, such as "python3".
bool has_name_of_its_own(const model::JobSpec& spec) {
  return spec.command.empty() || spec.name != model::program_name(spec.command.front());
}

// Its hash: commands may be long.
std::string command_key(const model::JobSpec& spec) {
  std::string words;
  for (const std::string& word : spec.command) words.append(word).push_back('\0');
  return fmt::format("!{:016x}", base::hash64(words));
}

// Returns the levels at which runs of the job are kept, the nearest first. Without a name of its
// own, its command is its name.
std::span<const RunLevel> levels_of(const model::JobSpec& spec) {
  static constexpr RunLevel kOfNamed[] = {RunLevel::kSameSize, RunLevel::kSameName,
                                          RunLevel::kSameCommand};
  static constexpr RunLevel kOfUnnamed[] = {RunLevel::kSameSize, RunLevel::kSameCommand};
  if (has_name_of_its_own(spec)) return kOfNamed;
  return kOfUnnamed;
}

// The lengths come first, so that no name can be taken for a part of another.
std::string history_key(const model::JobSpec& spec, RunLevel level) {
  std::string key = fmt::format("{}:{}", spec.user.size(), spec.user);
  if (level == RunLevel::kSameCommand) return key + command_key(spec);
  key += has_name_of_its_own(spec) ? fmt::format("/{}:{}", spec.name.size(), spec.name)
                                   : command_key(spec);
  if (level == RunLevel::kSameName) return key;
  key += fmt::format("/{}x{}", model::total_gpus(spec.request), spec.request.nodes);
  for (const std::string& type : spec.request.gpu_types) key += "," + type;
  return key;
}

std::uint64_t bucket_of(std::uint64_t hash) {
  return hash % RunHistory::kBuckets;
}

using Run = RunHistory::Run;
using Runs = std::vector<Run>;
using Values = std::vector<base::Duration>;

// Shares are kept in millionths, and times for them in milliseconds, so that no product overflows
// for limits of centuries.
constexpr std::int64_t kWholeShare = 1'000'000;
constexpr std::int64_t kLargestShare = 10'000 * kWholeShare;

std::int64_t milliseconds_of(base::Duration time) {
  return time.value() / base::milliseconds(1).value();
}

// Returns the time that is the same part of `whole` as `time` is of `of`.
base::Duration same_share(base::Duration time, base::Duration of, base::Duration whole) {
  if (of == whole) return time;
  const std::int64_t share =
      std::min(milliseconds_of(time) * kWholeShare / std::max<std::int64_t>(milliseconds_of(of), 1),
               kLargestShare);
  return base::milliseconds(milliseconds_of(whole) / kWholeShare * share +
                            milliseconds_of(whole) % kWholeShare * share / kWholeShare);
}

// Returns the times that a job of that limit or expected time would take if it ran as each of these
// did, ascending. Runs of which the measure is not known are left out.
Values values_of(const Runs& runs, RunMeasure measure, const model::JobSpec& spec) {
  Values values;
  for (const Run& run : runs) {
    const base::Duration of = measure == RunMeasure::kOfLimit ? run.limit : run.expected;
    if (measure == RunMeasure::kTime) {
      values.push_back(run.time);
    } else if (of > base::Duration()) {
      const base::Duration whole =
          measure == RunMeasure::kOfLimit ? spec.time_limit : *spec.expected_time;
      values.push_back(same_share(run.time, of, whole));
    }
  }
  std::ranges::sort(values);
  return values;
}

// Returns whether the values lie nearer to each other, relative to their size, by a tenth at least:
// what is nearly as good as the run time alone is no reason to leave it.
bool are_nearer(const Values& values, const Values& others) {
  const auto top = [](const Values& of) {
    return static_cast<double>(std::max<std::int64_t>(quantile(of, 90).value(), 1));
  };
  const auto bottom = [](const Values& of) {
    return static_cast<double>(std::max<std::int64_t>(quantile(of, 10).value(), 1));
  };
  return 1.1 * top(values) / bottom(values) < top(others) / bottom(others);
}

}  // namespace

std::string_view to_string(RunLevel level) {
  switch (level) {
    case RunLevel::kSameSize:
      return "size";
    case RunLevel::kSameName:
      return "name";
    case RunLevel::kSameCommand:
      return "command";
  }
  CHECK(false);
  std::unreachable();
}

std::string_view to_string(RunMeasure measure) {
  switch (measure) {
    case RunMeasure::kTime:
      return "time";
    case RunMeasure::kOfLimit:
      return "of_limit";
    case RunMeasure::kOfExpectedTime:
      return "of_expected_time";
  }
  CHECK(false);
  std::unreachable();
}

std::optional<base::Duration> nine_in_ten(std::span<const base::Duration> ascending) {
  const auto n = static_cast<std::int64_t>(ascending.size());
  if (n < 3) return std::nullopt;
  if (n < 9) {
    const base::Duration range = ascending.back() - ascending.front();
    return ascending.back() + base::Duration(range.value() * 6 / (n * n));
  }
  return ascending[static_cast<std::size_t>((9 * (n + 1) + 9) / 10) - 1];
}

base::Duration at_full_speed(base::Duration run, std::uint32_t speed) {
  return base::Duration(run.value() / model::kFullSpeed * speed);
}

void RunHistory::add(const model::JobSpec& spec, base::Duration run) {
  if (run < kShortest && spec.time_limit > kShortest) return;
  for (const RunLevel level : levels_of(spec)) {
    std::string key = history_key(spec, level);
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
    Runs& runs = bucket->front().runs;
    if (runs.size() == kRunsKept) runs.erase(runs.begin());
    // What an attempt took beyond its limit is the time of being stopped.
    runs.push_back({std::min(run, spec.time_limit), spec.time_limit,
                    spec.expected_time.value_or(base::Duration())});
  }
}

const RunHistory::Digest* RunHistory::find(std::string_view key, std::uint64_t hash) const {
  const Bucket* bucket = buckets_.find(bucket_of(hash));
  if (bucket == nullptr) return nullptr;
  const auto digest = std::ranges::find(*bucket, key, &Digest::key);
  return digest == bucket->end() ? nullptr : &*digest;
}

struct RunHistory::Level {
  RunLevel level = RunLevel::kSameSize;
  std::uint64_t source = 0;
  Runs runs;

  // Returns the prediction by these values, as far as they are longer than `elapsed`. If too few
  // are left, nothing is known of the end, which is the limit then.
  std::optional<RunPrediction> predict(Values values, RunMeasure measure, base::Duration limit,
                                       base::Duration elapsed) const {
    std::erase_if(values, [&](base::Duration value) { return value <= elapsed; });
    if (values.empty()) return std::nullopt;
    const base::Duration p50 = quantile(values, 50);
    const base::Duration p90 = std::max(nine_in_ten(values).value_or(limit), p50);
    return RunPrediction{p50,   p90, level, measure, static_cast<std::uint32_t>(values.size()),
                         source};
  }
};

RunHistory::Level RunHistory::level_of(const model::JobSpec& spec, RunLevel level) const {
  const std::string key = history_key(spec, level);
  const std::uint64_t hash = base::hash64(key);
  const Digest* digest = find(key, hash);
  Level found{level, hash, digest == nullptr ? Runs() : digest->runs};
  if (spec.time_limit <= kShortest) return found;
  // Older versions kept them.
  std::erase_if(found.runs, [](const Run& run) { return run.time < kShortest; });
  return found;
}

std::optional<RunPrediction> RunHistory::predict(const model::JobSpec& spec,
                                                 base::Duration elapsed) const {
  for (const RunLevel each : levels_of(spec)) {
    const Level level = level_of(spec, each);
    Values times = values_of(level.runs, RunMeasure::kTime, spec);
    if (times.size() < kFewestRuns) continue;
    Values shares = values_of(level.runs, RunMeasure::kOfLimit, spec);
    if (shares.size() >= kFewestRuns && are_nearer(shares, times)) {
      return level.predict(std::move(shares), RunMeasure::kOfLimit, spec.time_limit, elapsed);
    }
    return level.predict(std::move(times), RunMeasure::kTime, spec.time_limit, elapsed);
  }
  return std::nullopt;
}

std::optional<RunPrediction> RunHistory::predict_by_expected(const model::JobSpec& spec,
                                                             base::Duration elapsed) const {
  for (const RunLevel each : levels_of(spec)) {
    if (each == RunLevel::kSameSize) continue;
    const Level level = level_of(spec, each);
    Values shares = values_of(level.runs, RunMeasure::kOfExpectedTime, spec);
    if (shares.size() < kFewestRuns) continue;
    return level.predict(std::move(shares), RunMeasure::kOfExpectedTime, spec.time_limit, elapsed);
  }
  if (*spec.expected_time <= elapsed) return std::nullopt;
  RunPrediction without_runs;
  without_runs.p50 = *spec.expected_time;
  without_runs.p90 = base::Duration(spec.expected_time->value() / 100 * kDefaultSpreadPercent);
  without_runs.measure = RunMeasure::kOfExpectedTime;
  return without_runs;
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
  const auto within_limit = [&](const RunPrediction& found, PredictionBasis basis) {
    PredictedRun run{std::min(found.p50, limit), std::min(found.p90, limit), basis, {}};
    if (found.runs > 0) run.history = found;
    return run;
  };
  if (spec.expected_time) {
    const auto found = history.predict_by_expected(spec, elapsed);
    if (found) return within_limit(*found, PredictionBasis::kExpectedTime);
  }
  const auto found = history.predict(spec, elapsed);
  if (!found) return std::nullopt;
  return within_limit(*found, PredictionBasis::kHistory);
}

}  // namespace gpu_platform::scheduling
