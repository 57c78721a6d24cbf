#pragma once

#include "gpu_platform/v1/cluster.pb.h"
#include "model/node.h"

namespace gpu_platform::api {

// Fills the cleared message; it cannot fail. Pairs of GPUs without a known link are left out. The
// parts of GPUs have no walls yet.
void to_proto(const model::Node& node, v1::NodeTopology& out);

}  // namespace gpu_platform::api
