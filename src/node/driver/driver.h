#pragma once

#include "node/driver/driver_order.h"
#include "node/protocol.h"

namespace gpu_platform::node {

// Does what the order says and answers for each of its GPUs. Blocks for as long as the driver does;
// what hangs ends with the process.
DriverAnswer run_driver(const DriverOrder& order);

}  // namespace gpu_platform::node
