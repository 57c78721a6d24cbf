#pragma once

#include <optional>
#include <string>

#include "controller/state.h"
#include "health/breaker.h"
#include "model/policy.h"
#include "model/taint.h"

namespace gpu_platform::controller {

health::BreakerLimits limits_of_breaker(const model::Policy& policy);

// Asks health/breaker.h about the GPU, with the counts of its type and of its node class: the nodes
// with as many GPUs. What avoids work for as long as heat lasts does not count, and a GPU that is
// lost, does not answer or has failed a reset or a check is never refused and does not count. A
// DEGRADED GPU still runs jobs, so it holds only further DEGRADED ones back, and never what is
// worse. Returns why health may not keep the GPU from work in this way; nothing: it may. Cost: the
// GPUs of all nodes, where health does not keep the GPU out already.
std::optional<std::string> refusal_of_breaker(const State& state, model::GpuRef gpu,
                                              std::optional<model::TaintEffect> effect);

}  // namespace gpu_platform::controller
