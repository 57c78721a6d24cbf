#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/ids.h"
#include "telemetry/frame.h"
#include "telemetry/use_summary.h"

namespace gpu_platform::telemetry {

// Makes the summary of one attempt from the frames that come while it runs. Of a GPU that the
// attempt has whole, all values of its frames are the attempt's. Of a part, the attempt's own use
// frames give utilization, memory and power, and the GPU's frames what its jobs have in common:
// temperatures, clocks and why these are held down. One thread.
class UseRecorder {
 public:
  struct Options {
    model::AttemptId attempt;  // of use frames; unset: there are none
    // Each frame's counters were read with it. Otherwise a counter may be older than its frame, by
    // up to the pace at which counters are read, unless the frame says that it is new: it counts
    // from the first change on.
    bool are_counters_fresh = false;
  };

  // `begun`: the GPUs, the begin and the interval, and what was recorded before.
  UseRecorder(UseSummary begun, Options options);

  // A frame of something else is passed over.
  void take(const Frame& frame);
  // The attempt is over. What comes now is passed over but for the first energy that is read within
  // a second: it is the counter's value at the end. The caller sees to it that no other attempt has
  // the GPU by then.
  void end(base::Instant at);
  // It is over, and the energy of one of its GPUs was read before the end and not since.
  bool awaits_energy() const;

  const UseSummary& summary() const { return summary_; }

 private:
  // The counters of a GPU as they were seen last, to tell a new value from one that was read
  // before.
  struct Seen {
    std::array<std::optional<std::int64_t>, kUseCounters.size()> counters;
  };

  void take_values(const Frame& frame, GpuUse& gpu, Seen& seen);
  void take_last_energy(const Frame& frame);
  void take_counter(std::size_t place, std::int64_t value, const Frame& frame, GpuUse& gpu,
                    Seen& seen) const;

  const Options options_;
  UseSummary summary_;
  std::vector<Seen> seen_;  // as summary_.gpus
};

}  // namespace gpu_platform::telemetry
