#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/units.h"
#include "execution/kubernetes/cluster/device_name.h"

// The devices that a driver publishes, from its ResourceSlices. Pure. Thread: one owner.

namespace gpu_platform::execution {

// A GPU, a static MIG instance, or a MIG instance that is not made yet (without a UUID).
struct Device {
  DeviceName name;
  std::string node;
  std::string uuid;    // empty: there is nothing yet that a job could be given
  std::string parent;  // the UUID of the GPU that it is a part of; empty: of none
  std::string model;   // the driver's name; of a MIG instance with its profile
  std::string driver_version;
  std::string pci_address;  // "00000000:1b:00.0"; empty: not told
  base::Bytes memory;
  std::string taint;  // that keeps pods away; empty: none

  bool is_mig() const { return !parent.empty(); }
  friend bool operator==(const Device&, const Device&) = default;
};

class DevicePools {
 public:
  explicit DevicePools(std::string driver) : driver_(std::move(driver)) {}

  // A pool is taken over when all slices of its highest generation are there. Until then it stays
  // as it was; without any slice it is gone. Both return the nodes whose devices have changed.
  std::set<std::string> put(const nlohmann::json& slice);
  std::set<std::string> remove(std::string_view slice_name);

  // Ascending by name. The pointers are good until the next change.
  std::vector<const Device*> devices_of(std::string_view node) const;
  // Nodes with a device of this name: one at most.
  std::string node_of(const DeviceName& device) const;
  // Nodes with devices of this pool; unset: of any. Cost: linear in the number of nodes.
  std::set<std::string> nodes_of(const std::optional<std::string>& pool) const;
  std::set<std::string> slice_names() const;

 private:
  struct Slice {
    std::string pool;
    std::int64_t generation = 0;
    std::int64_t slices = 0;  // that its pool has in this generation
    std::vector<Device> devices;
  };
  struct Pool {
    std::set<std::string> slices;
    std::map<DeviceName, Device> devices;  // of the last complete generation
  };

  Slice slice_of(const nlohmann::json& json) const;
  void settle(const std::string& pool_name, std::set<std::string>& changed);
  void replace(const std::string& pool_name, std::map<DeviceName, Device> devices,
               std::set<std::string>& changed);

  std::string driver_;
  std::map<std::string, Slice, std::less<>> slices_;
  std::map<std::string, Pool, std::less<>> pools_;
  std::map<std::string, std::set<std::string>, std::less<>> pools_of_nodes_;
};

}  // namespace gpu_platform::execution
