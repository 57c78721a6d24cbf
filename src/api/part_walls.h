#pragma once

#include "controller/snapshot.h"
#include "gpu_platform/v1/cluster.pb.h"

namespace gpu_platform::api {

// Says of each part of the GPU what keeps its job to it, as far as the job is in the snapshot.
void put_walls(const controller::Snapshot& snapshot, v1::Gpu& gpu);
// The same for the GPUs of a node.
void put_walls(const controller::Snapshot& snapshot, v1::NodeTopology& node);

}  // namespace gpu_platform::api
