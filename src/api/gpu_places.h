#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "controller/snapshot.h"
#include "model/command.h"
#include "model/node.h"

// Finds the nodes and GPUs that a request names in a snapshot.

namespace gpu_platform::api {

struct FoundGpu {
  const model::Node* node = nullptr;  // of the snapshot that was searched
  std::uint32_t index = 0;

  const model::GpuInfo& info() const { return node->gpus[index].info; }
};

// kNotFound, with the field.
base::Result<const model::Node*> find_node(const controller::Snapshot& snapshot,
                                           const std::string& name, std::string field);

// kNotFound, with the field "gpu" or "gpu_id".
base::Result<FoundGpu> find_gpu(const controller::Snapshot& snapshot,
                                const model::GpuSelector& which);

}  // namespace gpu_platform::api
