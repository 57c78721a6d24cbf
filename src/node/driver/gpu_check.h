#pragma once

#include "node/driver/driver_order.h"
#include "node/protocol.h"

namespace gpu_platform::node {

// Burns in the GPUs of the order: readings, then, where libcuda is there, memory, arithmetic and
// the links between them, then the readings that this has left. Without libcuda readings only, and
// the answer says so. `cuda`: the library's file.
DriverAnswer check_gpus(const DriverOrder& order, const char* cuda = "libcuda.so.1");

}  // namespace gpu_platform::node
