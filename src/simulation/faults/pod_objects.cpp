#include "simulation/faults/pod_objects.h"

#include <fmt/format.h>

namespace gpu_platform::simulation {

namespace {

using Json = nlohmann::json;

constexpr const char* kDriver = "gpu.nvidia.com";

std::string mebibytes(base::Bytes bytes) {
  return fmt::format("{}Mi", bytes.value() / base::kMiB.value());
}

}  // namespace

Json node_object(const PodNode& node) {
  const Json amounts = {{"cpu", fmt::format("{}", node.info.cpus)},
                        {"memory", mebibytes(node.info.memory)}};
  const Json ready = {{"type", "Ready"},
                      {"status", node.is_reachable ? "True" : "Unknown"},
                      {"reason", node.is_reachable ? "KubeletReady" : "NodeStatusUnknown"}};
  return {
      {"metadata",
       {{"name", node.info.name},
        {"uid", node.uid},
        {"labels",
         {{"topology.kubernetes.io/zone", node.info.network.zone},
          {"topology.kubernetes.io/rack", node.info.network.rack},
          {"nvidia.com/gpu.clique", node.info.network.domain},
          {"karpenter.sh/capacity-type", std::string(to_string(node.info.capacity))}}}}},
      {"spec", {{"unschedulable", node.is_cordoned}}},
      {"status",
       {{"capacity", amounts}, {"allocatable", amounts}, {"conditions", Json::array({ready})}}}};
}

Json slice_object(const PodNode& node) {
  Json devices = Json::array();
  for (std::size_t i = 0; i < node.info.gpus.size(); ++i) {
    const model::GpuInfo& gpu = node.info.gpus[i];
    devices.push_back(
        {{"name", fmt::format("gpu-{}", i)},
         {"attributes",
          {{"type", {{"string", "gpu"}}},
           {"uuid", {{"string", gpu.uuid}}},
           {"productName", {{"string", gpu.model}}},
           {"driverVersion", {{"version", "570.1.0"}}},
           {"resource.kubernetes.io/pciBusID", {{"string", fmt::format("0000:{:02x}:00.0", i)}}}}},
         {"capacity", {{"memory", {{"value", mebibytes(gpu.memory)}}}}}});
  }
  return {{"metadata", {{"name", "slice-" + node.info.name}}},
          {"spec",
           {{"driver", kDriver},
            {"nodeName", node.info.name},
            {"pool", {{"name", node.info.name}, {"generation", 1}, {"resourceSliceCount", 1}}},
            {"devices", std::move(devices)}}}};
}

Json others_pod(const PodNode& node) {
  const Json requests = {{"cpu", fmt::format("{}", node.others_cpus)},
                         {"memory", mebibytes(node.others_memory)}};
  const Json container = {{"name", "c"}, {"resources", {{"requests", requests}}}};
  return {{"metadata", {{"name", "others-" + node.info.name}, {"namespace", "web"}}},
          {"spec", {{"nodeName", node.info.name}, {"containers", Json::array({container})}}},
          {"status", {{"phase", "Running"}}}};
}

Json others_claim(const PodNode& node, const std::string& uuid) {
  std::size_t index = 0;
  while (index + 1 < node.info.gpus.size() && node.info.gpus[index].uuid != uuid) ++index;
  const Json result = {{"request", "gpus"},
                       {"driver", kDriver},
                       {"pool", node.info.name},
                       {"device", fmt::format("gpu-{}", index)}};
  const Json user = {{"resource", "pods"}, {"name", "user"}, {"uid", "u"}};
  return {{"metadata", {{"name", "others-" + uuid}, {"namespace", "ml"}}},
          {"status",
           {{"allocation", {{"devices", {{"results", Json::array({result})}}}}},
            {"reservedFor", Json::array({user})}}}};
}

}  // namespace gpu_platform::simulation
