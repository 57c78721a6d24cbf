#pragma once

#include <optional>
#include <string>

#include "controller/state.h"
#include "model/taint.h"

namespace gpu_platform::controller {

// Health takes at most Policy::health_max_out_percent of a type's GPUs out of service, but always
// one of each node class (the nodes with as many GPUs of the type), and never all GPUs of a class
// that has several. What avoids work for as long as heat lasts does not count.
// Returns why the GPU may not be given this effect; nothing: it may. Cost: the GPUs of all nodes
// where the GPU is in service as far as health is concerned.
std::optional<std::string> refusal_of_breaker(const State& state, model::GpuRef gpu,
                                              std::optional<model::TaintEffect> effect);

}  // namespace gpu_platform::controller
