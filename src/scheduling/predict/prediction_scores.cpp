#include "scheduling/predict/prediction_scores.h"

#include <algorithm>
#include <utility>

#include "scheduling/predict/run_history.h"

namespace gpu_platform::scheduling {

namespace {

// Time that a cycle takes, and a start that is planned for the next nanosecond, are no error.
base::Duration late_by(base::Instant start, base::Instant predicted) {
  constexpr std::int64_t kSecond = base::seconds(1).value();
  const auto whole = [](base::Instant at) { return at.unix_ns() / kSecond; };
  return base::seconds(whole(start) - whole(predicted));
}

}  // namespace

void PredictionScores::add(const model::StartPrediction& prediction, base::Instant start) {
  calibration_.add(prediction, start);
  const base::Duration on_time;
  const base::Duration late = late_by(start, prediction.by_limits);
  add(model::PredictionBasis::kHardLimits, {late, late <= on_time});
  if (!prediction.p50.is_set()) return;
  add(prediction.basis,
      {late_by(start, prediction.p50), late_by(start, prediction.p90) <= on_time});
}

void PredictionScores::add(model::PredictionBasis basis, const Outcome& outcome) {
  Errors& errors = errors_[static_cast<std::size_t>(basis)];
  ++errors.starts;
  errors.by_then += outcome.by_then ? 1 : 0;
  if (errors.last.size() == kErrorsKept) errors.last.erase(errors.last.begin());
  errors.last.push_back(outcome.error);
}

std::optional<PredictionScore> PredictionScores::score(model::PredictionBasis basis) const {
  const Errors& all = errors(basis);
  if (all.last.empty()) return std::nullopt;
  PredictionScore score{.starts = all.starts, .by_then = all.by_then};
  std::vector<base::Duration> errors = all.last;
  std::ranges::sort(errors);
  score.p50_signed = quantile(errors, 50);
  for (base::Duration& error : errors) error = std::max(error, base::Duration() - error);
  std::ranges::sort(errors);
  score.p50 = quantile(errors, 50);
  score.p90 = quantile(errors, 90);
  return score;
}

bool PredictionScores::restore(model::PredictionBasis basis, Errors errors) {
  if (errors.last.size() > kErrorsKept || errors.starts < errors.last.size() ||
      errors.by_then > errors.starts || (errors.starts > 0 && errors.last.empty())) {
    return false;
  }
  errors_[static_cast<std::size_t>(basis)] = std::move(errors);
  return true;
}

}  // namespace gpu_platform::scheduling
