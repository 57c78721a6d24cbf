#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

// Pods of others for tests, as an API server answers them.

namespace gpu_platform::execution {

struct TheirPodShape {
  std::string name = "train-0";
  std::string namespace_name = "ml";
  std::int64_t gpus = 1;
  // The controlling owner; empty kind: none.
  std::string owner_kind = "Job";
  std::string owner_name = "train";
  std::string owner_uid = "uid-train";
  std::string owner_api = "batch/v1";
};

// With our gate, a container that asks for GPUs, and a batch Job as its owner.
inline nlohmann::json their_pod(const TheirPodShape& shape = {}) {
  nlohmann::json metadata = {{"name", shape.name},
                             {"namespace", shape.namespace_name},
                             {"uid", "uid-" + shape.name},
                             {"creationTimestamp", "2026-11-25T08:00:00Z"}};
  if (!shape.owner_kind.empty()) {
    metadata["ownerReferences"] = nlohmann::json::array({{{"apiVersion", shape.owner_api},
                                                          {"kind", shape.owner_kind},
                                                          {"name", shape.owner_name},
                                                          {"uid", shape.owner_uid},
                                                          {"controller", true}}});
  }
  if (shape.owner_kind == "Job") {
    metadata["labels"]["batch.kubernetes.io/job-name"] = shape.owner_name;
  }
  nlohmann::json container = {{"name", "worker"},
                              {"image", "registry.example.org/torch:2"},
                              {"command", {"python", "train.py"}},
                              {"resources", {{"requests", {{"cpu", "2"}, {"memory", "4Gi"}}}}}};
  if (shape.gpus > 0) {
    container["resources"]["limits"]["nvidia.com/gpu"] = fmt::format("{}", shape.gpus);
  }
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", std::move(metadata)},
          {"spec",
           {{"schedulingGates", nlohmann::json::array({{{"name", "gpu-platform/admission"}}})},
            {"containers", nlohmann::json::array({std::move(container)})}}},
          {"status", {{"phase", "Pending"}}}};
}

inline nlohmann::json their_namespace(const std::string& user = "ada") {
  nlohmann::json labels = {{"gpu-platform/queue", "default"}};
  if (!user.empty()) labels["gpu-platform/user"] = user;
  return {{"apiVersion", "v1"},
          {"kind", "Namespace"},
          {"metadata", {{"name", "ml"}, {"labels", std::move(labels)}}}};
}

}  // namespace gpu_platform::execution
