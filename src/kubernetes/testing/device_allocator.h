#pragma once

#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "kubernetes/testing/object_store.h"

// Which devices of which node a pod's ResourceClaims get, as far as the platform asks: devices by
// UUID, or any of a driver. Thread: one at a time.

namespace gpu_platform::kubernetes {

// The UUIDs that a CEL expression admits: `device.attributes["…"].uuid == "U"`, alternatives of it,
// and `….uuid in ["U", "V"]`. Empty: it says nothing of UUIDs.
std::set<std::string> uuids_in(const std::string& expression);

class DeviceAllocator {
 public:
  // Takes in all ResourceSlices and what is allocated now.
  explicit DeviceAllocator(const ObjectStore& store);

  // The node that an allocation binds a pod to; empty: none.
  static std::string node_of(const nlohmann::json& allocation);
  // An allocation of what a ResourceClaim asks for, from free devices of a node, which are taken
  // then; nothing if there are not enough.
  std::optional<nlohmann::json> allocate(const nlohmann::json& spec, const std::string& node);

 private:
  using DeviceId = std::tuple<std::string, std::string, std::string>;  // driver, pool, device
  struct Device {
    DeviceId id;
    std::string node;
    std::string uuid;
  };
  bool take(const nlohmann::json& request, const std::string& node, nlohmann::json& results);

  std::vector<Device> devices_;
  std::set<DeviceId> taken_;
};

}  // namespace gpu_platform::kubernetes
