#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

// The configurations of devices that DeviceClasses and ResourceClaims have, for the allocations
// that the platform writes. Pure. For any objects, nothing here throws or ends the
// program. Thread: one owner.

namespace gpu_platform::execution {

class DeviceConfigs {
 public:
  // Objects as they come; a deleted one by its name. Between begin_list() and end_list() of a kind,
  // what is not told is gone.
  enum class Source : std::uint8_t { kClass, kClaim };
  void begin_list(Source source);
  void end_list(Source source);
  void put(Source source, const nlohmann::json& object);
  void remove(Source source, const nlohmann::json& object);

  // Returns status.allocation.devices.config, as kube-scheduler writes it, of the claim
  // "namespace/name" with these spec.devices.requests: the configuration of each class once, with
  // the names of its requests, then the claim's own. Empty: there is none.
  nlohmann::json of_allocation(const std::string& claim, const nlohmann::json& requests) const;

 private:
  using Configs = std::map<std::string, nlohmann::json>;  // by key; lists that are not empty
  static constexpr std::size_t kKinds = 2;
  std::array<Configs, kKinds> configs_;
  std::array<std::optional<std::set<std::string>>, kKinds> unseen_;  // of a list that is under way
};

}  // namespace gpu_platform::execution
