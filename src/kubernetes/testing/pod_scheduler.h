#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kubernetes/testing/api_calls.h"
#include "kubernetes/testing/device_allocator.h"
#include "kubernetes/testing/object_store.h"

// The scheduler of PodRunner. Thread: one at a time.

namespace gpu_platform::kubernetes {

inline const ObjectKey kAllPods = {
    .group = "", .resource = "pods", .namespace_name = "", .name = ""};

// The path of an object in the version "v1" of its group.
ApiPath path_of(const ObjectKey& key);
// The ResourceClaims that a pod names.
std::vector<ObjectKey> device_requests_of(const ObjectKey& pod, const nlohmann::json& spec);

class PodScheduler {
 public:
  // Both outlive it.
  PodScheduler(ApiCalls& calls, ObjectStore& store) : calls_(calls), store_(store) {}
  std::uint32_t bind_all();

 private:
  // What keeps a pod from a node, in the server's words; empty: nothing. `allocations`: what its
  // ResourceClaims without an allocation would get there.
  std::string why_not(const ObjectKey& pod, const nlohmann::json& spec, const StoredObject& node,
                      std::map<ObjectKey, nlohmann::json>& allocations) const;
  bool has_counted_gpus(const nlohmann::json& spec, const StoredObject& node) const;
  bool bind(const ObjectKey& key, const nlohmann::json& pod);
  void reserve(const ObjectKey& key, const nlohmann::json& pod,
               const std::map<ObjectKey, nlohmann::json>& allocations);

  ApiCalls& calls_;
  ObjectStore& store_;
};

}  // namespace gpu_platform::kubernetes
