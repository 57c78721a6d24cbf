#include "node/devices/device_rules.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "node/mount_table.h"

namespace gpu_platform::node {

namespace {

constexpr DeviceNumber kControl{kGpuMajor, 255};      // /dev/nvidiactl
constexpr DeviceNumber kModeSetting{kGpuMajor, 254};  // /dev/nvidia-modeset
// Smaller ones configure and watch MIG on the whole node. Source: nv-caps.c, driver branch 595.
constexpr std::uint32_t kFirstGpuCapability = 3;
constexpr std::uint32_t kDirectRendering = 226;  // /dev/dri: a second way to every GPU
constexpr std::uint32_t kMemory = 1;
// Devices of major 1: null, zero, full, random, urandom. The others are the machine's memory and
// ports.
constexpr std::uint32_t kHarmlessMemory[] = {3, 5, 7, 8, 9};

struct Driver {
  std::uint32_t major = 0;
  std::string_view name;
};

// "195 nvidia-frontend", right-aligned.
std::optional<Driver> parse_driver(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  Driver driver;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), driver.major);
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  if (error != std::errc() || !line.starts_with(' ')) return std::nullopt;
  driver.name = line.substr(1);
  return driver;
}

std::vector<Driver> nvidia_drivers(std::string_view proc_devices) {
  std::vector<Driver> drivers;
  bool of_characters = false;
  while (!proc_devices.empty()) {
    const std::string_view line = take_line(proc_devices);
    if (line.ends_with(':')) of_characters = line == "Character devices:";
    if (!of_characters) continue;
    const std::optional<Driver> driver = parse_driver(line);
    if (driver && driver->name.starts_with("nvidia")) drivers.push_back(*driver);
  }
  return drivers;
}

template <class T>
void sort_and_unite(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

DeviceRules device_rules(const DeviceGrounds& grounds, std::span<const DeviceNumber> gpus) {
  DeviceRules rules;
  rules.guarded = {kMemory, kGpuMajor, kDirectRendering};
  for (const std::uint32_t minor : kHarmlessMemory) rules.allowed.push_back({kMemory, minor});
  rules.allowed.insert(rules.allowed.end(), gpus.begin(), gpus.end());
  if (!gpus.empty()) rules.allowed.push_back(kControl);
  if (!gpus.empty() && grounds.mode_setting) rules.allowed.push_back(kModeSetting);
  for (const Driver& driver : nvidia_drivers(grounds.proc_devices)) {
    rules.guarded.push_back(driver.major);
    if (gpus.empty() || driver.name != "nvidia-uvm") continue;
    rules.allowed.push_back({driver.major, 0});  // /dev/nvidia-uvm
    rules.allowed.push_back({driver.major, 1});  // /dev/nvidia-uvm-tools
  }
  sort_and_unite(rules.allowed);
  sort_and_unite(rules.guarded);
  return rules;
}

std::string error_in_devices(std::span<const DeviceNumber> devices, std::string_view proc_devices,
                             const std::optional<std::vector<std::uint32_t>>& gpu_minors) {
  const std::vector<Driver> drivers = nvidia_drivers(proc_devices);
  for (const DeviceNumber device : devices) {
    const bool is_gpu =
        device.major == kGpuMajor &&
        (gpu_minors ? std::ranges::find(*gpu_minors, device.minor) != gpu_minors->end()
                    : device.minor <= kMaxGpuMinor);
    const bool is_capability = std::ranges::any_of(drivers, [&](const Driver& driver) {
      return driver.major == device.major && driver.name == "nvidia-caps" &&
             device.minor >= kFirstGpuCapability;
    });
    if (is_gpu || is_capability) continue;
    return "device " + std::to_string(device.major) + ":" + std::to_string(device.minor) +
           " is not a GPU of this node";
  }
  return {};
}

std::optional<std::uint32_t> parse_device_minor(std::string_view information) {
  while (!information.empty()) {
    std::string_view line = take_line(information);
    if (!line.starts_with("Device Minor:")) continue;
    line.remove_prefix(std::min(line.find_first_of("0123456789"), line.size()));
    std::uint32_t minor = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), minor);
    if (error == std::errc()) return minor;
  }
  return std::nullopt;
}

}  // namespace gpu_platform::node
