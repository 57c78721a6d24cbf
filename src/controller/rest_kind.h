#pragma once

#include <cstdint>

#include "base/units.h"
#include "controller/state.h"
#include "model/gpu_clock.h"
#include "model/node.h"

// What becomes of the part of a GPU that no attempt holds.

namespace gpu_platform::controller {

// Returns what the attempts leave of the GPU.
base::GpuShare rest_of(const model::Gpu& gpu);

// Returns the first that is so, of the GPU or of its node:
//   offline     the node is OFFLINE or LOST, or the GPU is OFFLINE; a GPU that its driver does not
//               list any more is
//   resetting   the GPU is RESETTING
//   draining    the node or the GPU is DRAINING, for an operator, its cluster, hooks or health
//   degraded    the GPU is DEGRADED, though jobs that accept it may have it
//   others      processes that are no jobs keep it from work, or its cluster has given it away
//   held        it is kept for a job that others are stopped for, a part of it, too
//   idle        none of these; kReserved is a matter of time (accounting/rest_lines.h)
// If all is held, there is no rest, and it is kIdle.
model::RestKind rest_kind_of(const State& state, const model::Node& node, std::uint32_t gpu);

}  // namespace gpu_platform::controller
