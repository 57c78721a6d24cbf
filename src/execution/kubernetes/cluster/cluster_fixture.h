#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/prng.h"

// Objects of a cluster for tests, in the shapes that an API server of Kubernetes 1.36 answers.

namespace gpu_platform::execution {

struct NodeShape {
  std::string ready = "True";
  std::string ready_since = "2026-11-22T08:00:00Z";
  std::string reason = "KubeletReady";
  std::string message = "kubelet is posting ready status";
};

inline nlohmann::json node_object(const std::string& name, const NodeShape& shape = {}) {
  const nlohmann::json ready = {{"type", "Ready"},
                                {"status", shape.ready},
                                {"lastTransitionTime", shape.ready_since},
                                {"reason", shape.reason},
                                {"message", shape.message}};
  const nlohmann::json pressure = {{"type", "MemoryPressure"}, {"status", "False"}};
  return {{"metadata",
           {{"name", name},
            {"uid", "uid-" + name},
            {"labels",
             {{"kubernetes.io/hostname", name},
              {"topology.kubernetes.io/zone", "z1"},
              {"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"},
              {"nvidia.com/gpu.memory", "81559"}}}}},
          {"spec", nlohmann::json::object()},
          {"status",
           {{"capacity", {{"cpu", "128"}, {"memory", "2Ti"}, {"nvidia.com/gpu", "8"}}},
            {"allocatable", {{"cpu", "127500m"}, {"memory", "2000Gi"}, {"nvidia.com/gpu", "8"}}},
            {"conditions", nlohmann::json::array({pressure, ready})}}}};
}

inline nlohmann::json gpu_device(const std::string& node, std::uint32_t minor) {
  return {
      {"name", fmt::format("gpu-{}", minor)},
      {"attributes",
       {{"type", {{"string", "gpu"}}},
        {"uuid", {{"string", fmt::format("GPU-{}-{}", node, minor)}}},
        {"productName", {{"string", "NVIDIA H100 80GB HBM3"}}},
        {"driverVersion", {{"version", "570.1.0"}}},
        {"resource.kubernetes.io/pciBusID", {{"string", fmt::format("0000:{:02X}:00.0", minor)}}}}},
      {"capacity", {{"memory", {{"value", "81559Mi"}}}}}};
}

struct SliceShape {
  std::string name;
  std::string node;
  std::int64_t generation = 1;
  std::int64_t slices = 1;  // of the pool
};

inline nlohmann::json slice_object(const SliceShape& shape, std::vector<nlohmann::json> devices) {
  return {{"metadata", {{"name", shape.name}}},
          {"spec",
           {{"driver", "gpu.nvidia.com"},
            {"nodeName", shape.node},
            {"pool",
             {{"name", shape.node},
              {"generation", shape.generation},
              {"resourceSliceCount", shape.slices}}},
            {"devices", std::move(devices)}}}};
}

// A claim that has the device, for the pod "user".
inline nlohmann::json claim_object(const std::string& name, const std::string& pool,
                                   const std::string& device) {
  const nlohmann::json result = {
      {"request", "gpus"}, {"driver", "gpu.nvidia.com"}, {"pool", pool}, {"device", device}};
  const nlohmann::json user = {{"resource", "pods"}, {"name", "user"}, {"uid", "u"}};
  return {{"metadata", {{"name", name}, {"namespace", "ml"}}},
          {"status",
           {{"allocation", {{"devices", {{"results", nlohmann::json::array({result})}}}}},
            {"reservedFor", nlohmann::json::array({user})}}}};
}

// A rule that taints the devices of the selector: {"pool", "device"}, null, …
inline nlohmann::json taint_rule_object(const std::string& name, const nlohmann::json& selector,
                                        const std::string& effect = "NoSchedule") {
  const nlohmann::json taint = {
      {"key", "example.org/quarantine"}, {"value", "yes"}, {"effect", effect}};
  nlohmann::json rule = {{"metadata", {{"name", name}}}, {"spec", {{"taint", taint}}}};
  if (!selector.is_null()) rule["spec"]["deviceSelector"] = selector;
  return rule;
}

inline nlohmann::json pod_object(const std::string& name, const std::string& node,
                                 const nlohmann::json& requests) {
  const nlohmann::json container = {{"name", "c"}, {"resources", {{"requests", requests}}}};
  return {{"metadata", {{"name", name}, {"namespace", "web"}}},
          {"spec", {{"nodeName", node}, {"containers", nlohmann::json::array({container})}}},
          {"status", {{"phase", "Running"}}}};
}

// Replaces one value somewhere in `value` by another kind, for tests that no JSON ends the program.
inline void spoil(nlohmann::json& value, base::Prng& prng) {
  static const std::vector<nlohmann::json> kOthers = {nullptr,
                                                      true,
                                                      -1,
                                                      1e300,
                                                      "9E",
                                                      "text",
                                                      nlohmann::json::array({1}),
                                                      nlohmann::json::object({{"a", 1}}),
                                                      "\xff"};
  if (!value.is_structured() || value.empty() || prng.chance(1, 8)) {
    value = kOthers[prng.below(kOthers.size())];
    return;
  }
  auto place = value.begin();
  std::advance(place, static_cast<std::ptrdiff_t>(prng.below(value.size())));
  spoil(*place, prng);
}

}  // namespace gpu_platform::execution
