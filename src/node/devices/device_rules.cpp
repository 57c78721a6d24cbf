#include "node/devices/device_rules.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "node/mount_table.h"

namespace gpu_platform::node {

namespace {

constexpr DeviceNumber kControl{kGpuMajor, 255};      // /dev/nvidiactl
constexpr DeviceNumber kModeSetting{kGpuMajor, 254};  // /dev/nvidia-modeset
constexpr std::uint32_t kDirectRendering = 226;       // /dev/dri: a second way to every GPU
constexpr std::uint32_t kMemory = 1;
// Of major 1: null, zero, full, random, urandom. The others are the machine's memory and ports.
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

DeviceRules device_rules(std::string_view proc_devices, std::span<const DeviceNumber> gpus) {
  DeviceRules rules;
  rules.guarded = {kMemory, kGpuMajor, kDirectRendering};
  for (const std::uint32_t minor : kHarmlessMemory) rules.allowed.push_back({kMemory, minor});
  rules.allowed.insert(rules.allowed.end(), gpus.begin(), gpus.end());
  if (!gpus.empty()) rules.allowed.insert(rules.allowed.end(), {kControl, kModeSetting});
  for (const Driver& driver : nvidia_drivers(proc_devices)) {
    rules.guarded.push_back(driver.major);
    if (gpus.empty() || driver.name != "nvidia-uvm") continue;
    rules.allowed.push_back({driver.major, 0});  // /dev/nvidia-uvm
    rules.allowed.push_back({driver.major, 1});  // /dev/nvidia-uvm-tools
  }
  sort_and_unite(rules.allowed);
  sort_and_unite(rules.guarded);
  return rules;
}

}  // namespace gpu_platform::node
