#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"
#include "model/start_prediction.h"
#include "scheduling/predict/start_calibration.h"

namespace gpu_platform::scheduling {

// The errors of the estimates of one basis.
struct PredictionScore {
  std::uint64_t starts = 0;   // that were predicted so
  std::uint64_t by_then = 0;  // the starts no later than by_limits, or p90, said
  base::Duration p50;         // of the errors of the last ones, in either direction
  base::Duration p90;
  base::Duration p50_signed;  // negative: started earlier than predicted

  friend bool operator==(const PredictionScore&, const PredictionScore&) = default;
};

// Compares past estimates with the starts that followed: by_limits for hard limits, p50 for the
// others. In whole seconds.
// Memory: the last kErrorsKept errors of each basis; quantiles of these are exact.
class PredictionScores {
 public:
  static constexpr std::size_t kErrorsKept = 256;

  struct Errors {
    std::uint64_t starts = 0;
    std::uint64_t by_then = 0;
    std::vector<base::Duration> last;  // start - estimate; the oldest first
    friend bool operator==(const Errors&, const Errors&) = default;
  };

  // Records the start of a job with that estimate.
  void add(const model::StartPrediction& prediction, base::Instant start);
  // Records the start of a job that got that estimate deep in the queue: for the calibration alone.
  void add_early(const model::StartPrediction& prediction, base::Instant start) {
    calibration_.add(prediction, start);
  }

  // Returns nothing if no estimate was made.
  std::optional<PredictionScore> score(model::PredictionBasis basis) const;

  const Errors& errors(model::PredictionBasis basis) const {
    return errors_[static_cast<std::size_t>(basis)];
  }
  // Takes over what errors() returned; false for values that no scores have.
  bool restore(model::PredictionBasis basis, Errors errors);

  const StartCalibration& calibration() const { return calibration_; }
  void restore(StartCalibration calibration) { calibration_ = std::move(calibration); }

  friend bool operator==(const PredictionScores&, const PredictionScores&) = default;

 private:
  struct Outcome {
    base::Duration error;
    bool by_then = false;
  };
  void add(model::PredictionBasis basis, const Outcome& outcome);

  std::array<Errors, model::kPredictionBases> errors_;
  StartCalibration calibration_;
};

}  // namespace gpu_platform::scheduling
