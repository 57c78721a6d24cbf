#pragma once

#include <optional>
#include <string>

#include "controller/state.h"
#include "model/taint.h"

namespace gpu_platform::controller {

// Asks health/breaker.h about the GPU, with the counts of its type and of its node class: the nodes
// with as many GPUs. What avoids work for as long as heat lasts does not count, and a GPU that is
// lost or does not answer is never refused. Returns why health may not keep the GPU from work in
// this way; nothing: it may. Cost: the GPUs of all nodes, where health does not keep the GPU out
// already.
std::optional<std::string> refusal_of_breaker(const State& state, model::GpuRef gpu,
                                              std::optional<model::TaintEffect> effect);

}  // namespace gpu_platform::controller
