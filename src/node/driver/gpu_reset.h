#pragma once

#include "node/driver/driver_order.h"
#include "node/protocol.h"

namespace gpu_platform::node {

// Resets the GPUs of the order. Before, it is proved that no process uses any of them, nor any
// other GPU that would be reset with them: all of those must be in the order. After, each must be
// listed again and answer, and a power limit that was set is set again.
DriverAnswer reset_gpus(const DriverOrder& order);

}  // namespace gpu_platform::node
