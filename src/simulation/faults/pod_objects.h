#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "simulation/faults/pod_cluster.h"

// The objects of a simulated node, in the shapes that an API server answers. Pure.

namespace gpu_platform::simulation {

nlohmann::json node_object(const PodNode& node);
// The devices of the node.
nlohmann::json slice_object(const PodNode& node);
// A pod of others that uses what others use there.
nlohmann::json others_pod(const PodNode& node);
// A claim of others on that GPU.
nlohmann::json others_claim(const PodNode& node, const std::string& uuid);

}  // namespace gpu_platform::simulation
