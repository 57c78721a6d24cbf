#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "execution/kubernetes/cluster/device_name.h"
#include "execution/kubernetes/settings.h"
#include "kubernetes/json_reader.h"

// The devices that others hold, from their ResourceClaims. Pure. Thread: one owner.

namespace gpu_platform::execution {

// A claim that has devices allocated.
struct DeviceClaim {
  std::string key;  // "namespace/name"
  std::vector<DeviceName> devices;
  std::string text;  // "claim NAMESPACE/NAME of pod A, B"
  friend bool operator==(const DeviceClaim&, const DeviceClaim&) = default;
};

// What the platform reads of claims: the holder of each device, the claims of its own, and, where
// it writes allocations itself (kOwned), the configuration that belongs into them.
kubernetes::JsonFields fields_of_claims(DeviceMode devices);

// Nothing if the claim holds no device. Access for administration holds none.
std::optional<DeviceClaim> view_of_claim(const nlohmann::json& claim);

class DeviceClaims {
 public:
  // Both return the devices whose claims have changed.
  std::set<DeviceName> put(DeviceClaim claim);
  std::set<DeviceName> remove(std::string_view key);

  // What holds the device, in words; empty: nothing does.
  std::string holders_of(const DeviceName& device) const;
  std::set<std::string> keys() const;

 private:
  std::map<std::string, DeviceClaim, std::less<>> claims_;
  std::map<DeviceName, std::set<std::string>> by_device_;
};

}  // namespace gpu_platform::execution
