#pragma once

#include <cstddef>

#include "controller/snapshot.h"
#include "model/engine_kind.h"
#include "scheduling/pools/guarantees.h"

// What was found of the nodes, for comparison with what a configuration expects.

namespace gpu_platform::bin {

scheduling::GpusByType gpus_by_type(const controller::Snapshot& snapshot);

struct NodeCount {
  std::size_t nodes = 0;
  std::size_t gpus = 0;  // of them
};
NodeCount nodes_of(model::EngineKind engine, const controller::Snapshot& snapshot);

}  // namespace gpu_platform::bin
