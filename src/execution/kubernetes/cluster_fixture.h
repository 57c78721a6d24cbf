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
  using Json = nlohmann::json;
  const Json ready = {{"type", "Ready"},
                      {"status", shape.ready},
                      {"lastTransitionTime", shape.ready_since},
                      {"reason", shape.reason},
                      {"message", shape.message}};
  const Json pressure = {{"type", "MemoryPressure"}, {"status", "False"}};
  return {{"metadata",
           {{"name", name},
            {"uid", "uid-" + name},
            {"labels",
             {{"kubernetes.io/hostname", name},
              {"topology.kubernetes.io/zone", "z1"},
              {"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"},
              {"nvidia.com/gpu.memory", "81559"}}}}},
          {"spec", Json::object()},
          {"status",
           {{"capacity", {{"cpu", "128"}, {"memory", "2Ti"}, {"nvidia.com/gpu", "8"}}},
            {"allocatable", {{"cpu", "127500m"}, {"memory", "2000Gi"}, {"nvidia.com/gpu", "8"}}},
            {"conditions", Json::array({pressure, ready})}}}};
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
  using Json = nlohmann::json;
  const Json result = {
      {"request", "gpus"}, {"driver", "gpu.nvidia.com"}, {"pool", pool}, {"device", device}};
  const Json user = {{"resource", "pods"}, {"name", "user"}, {"uid", "u"}};
  return {{"metadata", {{"name", name}, {"namespace", "ml"}}},
          {"status",
           {{"allocation", {{"devices", {{"results", Json::array({result})}}}}},
            {"reservedFor", Json::array({user})}}}};
}

// A rule that taints the devices of the selector: {"pool", "device"}, null, …
inline nlohmann::json taint_rule_object(const std::string& name, const nlohmann::json& selector,
                                        const std::string& effect = "NoSchedule") {
  using Json = nlohmann::json;
  const Json taint = {{"key", "example.org/quarantine"}, {"value", "yes"}, {"effect", effect}};
  Json rule = {{"metadata", {{"name", name}}}, {"spec", {{"taint", taint}}}};
  if (!selector.is_null()) rule["spec"]["deviceSelector"] = selector;
  return rule;
}

inline nlohmann::json pod_object(const std::string& name, const std::string& node,
                                 const nlohmann::json& requests) {
  using Json = nlohmann::json;
  const Json container = {{"name", "c"}, {"resources", {{"requests", requests}}}};
  return {{"metadata", {{"name", name}, {"namespace", "web"}}},
          {"spec", {{"nodeName", node}, {"containers", Json::array({container})}}},
          {"status", {{"phase", "Running"}}}};
}

// Replaces one value somewhere in `value` by another kind, for tests that no JSON ends the program.
inline void spoil(nlohmann::json& value, base::Prng& prng) {
  using Json = nlohmann::json;
  static const std::vector<Json> kOthers = {
      nullptr, true, -1, 1e300, "9E", "text", Json::array({1}), Json::object({{"a", 1}}), "\xff"};
  if (!value.is_structured() || value.empty() || prng.chance(1, 8)) {
    value = kOthers[prng.below(kOthers.size())];
    return;
  }
  auto place = value.begin();
  std::advance(place, static_cast<std::ptrdiff_t>(prng.below(value.size())));
  spoil(*place, prng);
}

}  // namespace gpu_platform::execution
