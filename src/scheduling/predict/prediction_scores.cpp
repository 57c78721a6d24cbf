#include "scheduling/predict/prediction_scores.h"

#include <algorithm>
#include <utility>

#include "scheduling/predict/quantile.h"

namespace gpu_platform::scheduling {

void PredictionScores::add(const model::StartPrediction& prediction, base::Instant start) {
  add(model::PredictionBasis::kHardLimits,
      {start - prediction.by_limits, start <= prediction.by_limits});
  if (!prediction.p50.is_set()) return;
  add(prediction.basis, {start - prediction.p50, start <= prediction.p90});
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
