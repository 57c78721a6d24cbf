#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "model/start_prediction.h"

namespace gpu_platform::scheduling {

// How far estimates of one basis were off.
struct PredictionScore {
  std::uint64_t starts = 0;   // that were predicted so
  std::uint64_t by_then = 0;  // of them, no later than by_limits, or p90, said
  base::Duration p50;         // of how far the last ones were off, either way
  base::Duration p90;
  base::Duration p50_signed;  // negative: started earlier than predicted

  friend bool operator==(const PredictionScore&, const PredictionScore&) = default;
};

// Past estimates against what came of them: of hard limits by_limits, of the others p50.
// Memory: the last kErrorsKept errors of each basis; quantiles are exact of these.
class PredictionScores {
 public:
  static constexpr std::size_t kErrorsKept = 256;

  struct Errors {
    std::uint64_t starts = 0;
    std::uint64_t by_then = 0;
    std::vector<base::Duration> last;  // start - estimate; the oldest first
    friend bool operator==(const Errors&, const Errors&) = default;
  };

  // A job starts that was predicted so.
  void add(const model::StartPrediction& prediction, base::Instant start);

  // Nothing where none was made.
  std::optional<PredictionScore> score(model::PredictionBasis basis) const;

  const Errors& errors(model::PredictionBasis basis) const {
    return errors_[static_cast<std::size_t>(basis)];
  }
  // As errors() gave it; false for what no scores have.
  bool restore(model::PredictionBasis basis, Errors errors);

  friend bool operator==(const PredictionScores&, const PredictionScores&) = default;

 private:
  struct Outcome {
    base::Duration error;
    bool by_then = false;
  };
  void add(model::PredictionBasis basis, const Outcome& outcome);

  std::array<Errors, model::kPredictionBases> errors_;
};

}  // namespace gpu_platform::scheduling
