#pragma once

#include <cstdint>
#include <string>

#include "gpu_platform/v1/cluster.pb.h"
#include "model/gpu_reading.h"
#include "model/node.h"

// The readings of a GPU, in messages and in words.

namespace gpu_platform::api {

// Fills the cleared message; total. `reading` is null where nothing was read.
void to_proto(const model::Gpu& gpu, const model::Node& node, std::uint32_t index,
              const model::GpuReading* reading, v1::GpuHealth& out);

void to_proto(const model::GpuProcess& process, v1::GpuProcess& out);

// Returns why the GPU is not available, or what is wrong with it: its operator's words, the
// processes that it waits for, unmanaged processes that keep work away, a driver that does not
// answer, a node that is not up. Empty if there is nothing to say.
std::string reason_of(const model::Gpu& gpu, const model::Node& node,
                      const model::GpuReading* reading);

}  // namespace gpu_platform::api
