#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "controller/judge/endings.h"
#include "controller/state.h"
#include "execution/engine.h"
#include "health/rules.h"
#include "model/evidence.h"

// What the ends of jobs tell of their GPUs, and whether a failed one is innocent.

namespace gpu_platform::controller {

// Returns the facts of an attempt that is about to end, for the GPUs that it holds: none if they
// tell nothing of the GPUs. Call it before the end is applied.
struct EndOnGpus {
  std::vector<model::GpuRef> gpus;
  model::Evidence evidence;
};
std::optional<EndOnGpus> end_on_gpus(const State& state, const execution::Ended& seen,
                                     base::Instant now);

// Returns why the failed attempt is innocent; nothing if it is not, or that is not known.
std::optional<HardwareBlame> blame_of_end(const State& state, const execution::Ended& seen,
                                          const health::Rules& rules, base::Instant now);

}  // namespace gpu_platform::controller
