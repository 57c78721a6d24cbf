#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "node/launcher/launcher_host.h"
#include "node/received_request.h"

namespace gpu_platform::node {

// What a request may ask for on this machine: devices that are GPUs, and containers where there is
// an engine that can be trusted with them.
class LaunchCheck {
 public:
  // It must outlive this. The list of drivers in it is read again when a device is unknown.
  explicit LaunchCheck(LauncherHost& host) : host_(host) {}

  // Returns why the request cannot be carried out here; empty: it can.
  std::string run(const LaunchRequest& request);

 private:
  std::string check_devices(const std::vector<DeviceNumber>& devices);
  std::string check_container(const LaunchRequest& request) const;

  LauncherHost& host_;
  std::optional<std::vector<std::uint32_t>> gpu_minors_;  // as the driver said last
};

}  // namespace gpu_platform::node
