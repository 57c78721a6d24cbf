#include "scheduling/predict/start_calibration.h"

#include <algorithm>
#include <utility>

namespace gpu_platform::scheduling {

namespace {

constexpr std::int64_t kFloorSeconds = 60;
constexpr std::int64_t kThousandths = 1000;

std::int64_t seconds_between(base::Instant from, base::Instant to) {
  constexpr std::int64_t kSecond = base::seconds(1).value();
  const std::int64_t seconds = to.unix_ns() / kSecond - from.unix_ns() / kSecond;
  return std::max<std::int64_t>(seconds, 0) + kFloorSeconds;
}

std::uint32_t thousandths(std::int64_t of_real, std::int64_t of_said) {
  const std::int64_t rounded_up = (of_real * kThousandths + of_said - 1) / of_said;
  return static_cast<std::uint32_t>(std::min<std::int64_t>(rounded_up, StartCalibration::kLargest));
}

// Returns what the next one exceeds in 100 - `percent` of 100 cases. Not empty.
std::uint32_t next_quantile(StartCalibration::Outcomes outcomes, std::size_t percent) {
  std::ranges::sort(outcomes);
  const std::size_t rank = (percent * (outcomes.size() + 1) + 99) / 100;
  return outcomes[std::min(rank, outcomes.size()) - 1];
}

// In milliseconds, of which a product with kLargest fits, and within a century.
base::Instant moved(base::Instant said, base::Instant made_at, std::int64_t by_thousandths) {
  if (by_thousandths == kThousandths) return said;
  constexpr std::int64_t kFloor = kFloorSeconds * 1000;
  constexpr std::int64_t kCentury = std::int64_t{100} * 366 * 86400 * 1000;
  const base::Duration wait = std::max(said - made_at, base::Duration());
  const std::int64_t said_ms = std::min(wait.value() / base::milliseconds(1).value(), kCentury);
  const std::int64_t longer = (said_ms + kFloor) * by_thousandths / kThousandths - kFloor;
  return made_at + base::milliseconds(std::clamp<std::int64_t>(longer, 0, kCentury));
}

}  // namespace

std::size_t depth_of(std::size_t jobs_ahead) {
  const auto* const next = std::ranges::upper_bound(kFirstOfDepth, jobs_ahead);
  return static_cast<std::size_t>(next - kFirstOfDepth.begin()) - 1;
}

StartQuantiles StartCorrections::corrected(const SimulatedStart& simulated) const {
  const OfDepth& depth = depths_[depth_of(simulated.jobs_ahead)];
  const auto limited = [&](base::Instant at) {
    return simulated.planned.is_set() ? std::min(at, simulated.planned) : at;
  };
  StartQuantiles start{limited(moved(limited(simulated.start.p50), simulated.made_at, depth.p50)),
                       moved(limited(simulated.start.p90), simulated.made_at, depth.p90)};
  const bool is_kept =
      simulated.is_promised || depth.starts == 0 || depth.by_then * 100 >= depth.starts * kTrusted;
  if (is_kept) start.p90 = limited(start.p90);
  start.p90 = std::max(start.p90, start.p50);
  return start;
}

std::optional<PlannedTrust> StartCorrections::trust_in(base::Instant planned, base::Instant made_at,
                                                       std::size_t jobs_ahead) const {
  const OfDepth& depth = depths_[depth_of(jobs_ahead)];
  if (depth.starts == 0) return std::nullopt;
  const base::Instant late = moved(planned, made_at, depth.planned);
  return PlannedTrust{std::max(late, planned), depth.starts, depth.by_then};
}

void StartCalibration::add(const model::StartPrediction& prediction, base::Instant start) {
  auto& bounds = outcomes_[depth_of(prediction.jobs_ahead)];
  const std::int64_t real = seconds_between(prediction.made_at, start);
  const auto note = [&](StartBound bound, base::Instant said) {
    if (!said.is_set()) return;
    Outcomes& outcomes = bounds[static_cast<std::size_t>(bound)];
    if (outcomes.size() == kOutcomesKept) outcomes.erase(outcomes.begin());
    outcomes.push_back(thousandths(real, seconds_between(prediction.made_at, said)));
  };
  note(StartBound::kPlanned, prediction.by_limits);
  note(StartBound::kP50, prediction.simulated_p50);
  note(StartBound::kP90, prediction.simulated_p90);
}

const StartCalibration::Outcomes* StartCalibration::nearest(std::size_t depth,
                                                            StartBound bound) const {
  const auto enough = [&](std::size_t of) -> const Outcomes* {
    const Outcomes& found = outcomes(of, bound);
    return found.size() >= kFewestOutcomes ? &found : nullptr;
  };
  for (std::size_t of = depth + 1; of-- > 0;) {
    if (const Outcomes* found = enough(of)) return found;
  }
  for (std::size_t of = depth + 1; of < kDepths; ++of) {
    if (const Outcomes* found = enough(of)) return found;
  }
  return nullptr;
}

StartCorrections StartCalibration::corrections() const {
  StartCorrections result;
  for (std::size_t i = 0; i < kDepths; ++i) {
    StartCorrections::OfDepth& depth = result.depths_[i];
    if (const auto* found = nearest(i, StartBound::kP50)) depth.p50 = next_quantile(*found, 50);
    if (const auto* found = nearest(i, StartBound::kP90)) depth.p90 = next_quantile(*found, 90);
    const Outcomes* found = nearest(i, StartBound::kPlanned);
    if (found == nullptr) continue;
    depth.planned = next_quantile(*found, 90);
    depth.starts = found->size();
    depth.by_then = static_cast<std::uint64_t>(
        std::ranges::count_if(*found, [](std::uint32_t each) { return each <= kThousandths; }));
  }
  return result;
}

bool StartCalibration::restore(std::size_t depth, StartBound bound, Outcomes outcomes) {
  const bool is_valid =
      outcomes.size() <= kOutcomesKept &&
      std::ranges::all_of(outcomes, [](std::uint32_t each) { return each <= kLargest; });
  if (is_valid) outcomes_[depth][static_cast<std::size_t>(bound)] = std::move(outcomes);
  return is_valid;
}

}  // namespace gpu_platform::scheduling
