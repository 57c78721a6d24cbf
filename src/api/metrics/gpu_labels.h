#pragma once

#include <cstdint>
#include <string>

#include "api/metrics/page.h"
#include "base/letters.h"
#include "controller/snapshot.h"
#include "model/node.h"

namespace gpu_platform::api {

template <class State>
std::string label_of(State state) {
  return base::to_lower(to_string(state));
}

// The labels of all series of a GPU: those of dcgm-exporter, and `model`, its name in the
// catalogue. `lower_hostname`: the label "hostname" is there, too.
MetricLabels labels_of(const model::Node& node, std::uint32_t index, bool lower_hostname = false);

// Calls visit(node, index, gpu) with every GPU.
template <class Visit>
void for_each_gpu(const controller::Snapshot& snapshot, Visit&& visit) {
  snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (std::uint32_t i = 0; i < node.gpus.size(); ++i) visit(node, i, node.gpus[i]);
  });
}

// In whole GPUs.
inline double in_gpus(base::GpuShare share) {
  return static_cast<double>(share.value()) / static_cast<double>(base::kWholeGpu.value());
}
// What attempts hold of it.
base::GpuShare held_of(const model::Gpu& gpu);

}  // namespace gpu_platform::api
