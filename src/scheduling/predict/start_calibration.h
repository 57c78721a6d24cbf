#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "model/start_prediction.h"

// What the errors of past predictions of starts say of the next ones. A simulation in which all
// jobs take their p50, or all of them their p90, gives no quantile of a start: the longest of many
// run times, and jobs that come later, are in neither. So each simulated time is moved to where it
// should have been for the last starts that were predicted as deep in the queue. This is split
// conformal prediction (V. Vovk, A. Gammerman, G. Shafer, Algorithmic Learning in a Random World,
// 2005) on the last starts: nine in ten hold for any distribution, if the next start is
// like the last ones.

namespace gpu_platform::scheduling {

struct StartQuantiles {
  base::Instant p50;
  base::Instant p90;  // not before p50

  friend bool operator==(const StartQuantiles&, const StartQuantiles&) = default;
};

// The times of a prediction that are compared with the start.
enum class StartBound : std::uint8_t { kPlanned, kP50, kP90 };
inline constexpr std::size_t kStartBounds = 3;

// Jobs are compared with those that had as many waiting jobs ahead: 0 to 7, 8 to 31, 32 to 127, and
// 128 or more.
inline constexpr std::array<std::size_t, 4> kFirstOfDepth = {0, 8, 32, 128};
inline constexpr std::size_t kDepths = kFirstOfDepth.size();
std::size_t depth_of(std::size_t jobs_ahead);

// How far a planned start that is no promise can be trusted.
struct PlannedTrust {
  base::Instant p90;          // nine in ten such jobs started by then; not before the planned start
  std::uint64_t starts = 0;   // the last ones of jobs as deep in the queue
  std::uint64_t by_then = 0;  // of them, no later than planned

  friend bool operator==(const PlannedTrust&, const PlannedTrust&) = default;
};

// A prediction before it is corrected.
struct SimulatedStart {
  base::Instant made_at;
  std::size_t jobs_ahead = 0;
  StartQuantiles start;
  base::Instant planned;     // unset: not known
  bool is_promised = false;  // the planned start is
};

// The corrections that follow from the errors. A small value, to be used for many predictions.
class StartCorrections {
 public:
  // Returns the quantiles that hold. p50 is never later than the planned start, and p90 is not if
  // that is promised, or if planned starts were kept by at least kTrusted percent of the jobs as
  // deep in the queue.
  StartQuantiles corrected(const SimulatedStart& simulated) const;

  // Returns nothing if too few starts are known.
  std::optional<PlannedTrust> trust_in(base::Instant planned, base::Instant made_at,
                                       std::size_t jobs_ahead) const;

  static constexpr std::uint64_t kTrusted = 95;

 private:
  friend class StartCalibration;

  // In thousandths of the wait that was said.
  struct OfDepth {
    std::int64_t p50 = 1000;
    std::int64_t p90 = 1000;
    std::int64_t planned = 1000;
    std::uint64_t starts = 0;   // that the planned one is known of
    std::uint64_t by_then = 0;  // of them
  };

  std::array<OfDepth, kDepths> depths_;
};

// The errors. Memory: kOutcomesKept numbers for each bound and depth.
class StartCalibration {
 public:
  static constexpr std::size_t kOutcomesKept = 256;
  static constexpr std::size_t kFewestOutcomes = 20;  // that correct anything
  static constexpr std::uint32_t kLargest = 100'000;

  // The waits until starts in thousandths of those that were said, each a minute longer than it
  // was, so that seconds are no error of a prediction of seconds. Rounded up; the oldest first.
  using Outcomes = std::vector<std::uint32_t>;

  // Records the start of a job that it was simulated for.
  void add(const model::StartPrediction& prediction, base::Instant start);

  // A depth of which too little is known takes those of the next one with fewer jobs ahead, else
  // of the next one with more.
  StartCorrections corrections() const;

  const Outcomes& outcomes(std::size_t depth, StartBound bound) const {
    return outcomes_[depth][static_cast<std::size_t>(bound)];
  }
  // Takes over what outcomes() returned; false for values that no calibration has.
  bool restore(std::size_t depth, StartBound bound, Outcomes outcomes);

  friend bool operator==(const StartCalibration&, const StartCalibration&) = default;

 private:
  const Outcomes* nearest(std::size_t depth, StartBound bound) const;

  std::array<std::array<Outcomes, kStartBounds>, kDepths> outcomes_;
};

}  // namespace gpu_platform::scheduling
