#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/ids.h"

// The watchdog of jobs (JobSpec::hang_timeout).

namespace gpu_platform::monitoring {

// Finds attempts that neither used any of their GPUs nor printed anything for the time that their
// job allows. What is not known counts as activity: a GPU that is not read, or does not tell its
// utilization, and the time before its first reading. A reading tells whether a kernel ran in its
// last moments, so work that a reading in each interval never meets is not seen; a job's time
// should be many intervals.
//
// Times are on a clock that never jumps. Thread: one. Memory: a few words for each GPU, and for
// each watched attempt.
class HangWatch {
 public:
  // Readings further apart do not tell that a GPU was idle between them.
  static constexpr base::Duration kLongestGap = base::minutes(10);

  struct Watched {
    model::AttemptId attempt;
    base::Duration timeout;
    std::vector<std::string> gpus;  // UUIDs of all its GPUs
  };
  // Returns a number that changes whenever the attempt prints something; nothing: it is not known.
  using OutputMark = std::function<std::optional<std::uint64_t>(model::AttemptId)>;

  void take_reading(const std::string& uuid, std::optional<std::uint32_t> utilization_percent,
                    base::Instant at);
  // Returns those of the attempts that hang now. An attempt that is asked about for the first time,
  // or for the first time after kLongestGap, is quiet from then on at the earliest.
  std::vector<model::AttemptId> look(const std::vector<Watched>& watched,
                                     const OutputMark& output_of, base::Instant now);

 private:
  struct GpuSeen {
    base::Instant read_at;
    base::Instant quiet_since;  // it was idle in all readings since
  };
  struct AttemptSeen {
    base::Instant looked_at;
    base::Instant quiet_since;
    std::optional<std::uint64_t> output;
  };

  // Returns since when all GPUs are quiet; nothing: that is not known.
  std::optional<base::Instant> quiet_since(const std::vector<std::string>& gpus,
                                           base::Instant now) const;

  std::map<std::string, GpuSeen, std::less<>> gpus_;  // by UUID
  std::map<model::AttemptId, AttemptSeen> attempts_;
};

}  // namespace gpu_platform::monitoring
