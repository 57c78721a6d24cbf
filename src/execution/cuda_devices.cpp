#include "execution/cuda_devices.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "execution/job_variables.h"

namespace gpu_platform::execution {

namespace {

bool is_mig_device(const LaunchGpu& gpu) {
  return gpu.info.uuid.starts_with("MIG-");
}

// Returns how many of the GPUs come before this one in PCI order.
std::size_t place_among(const std::vector<LaunchGpu>& gpus, const LaunchGpu& gpu) {
  const auto place = [](const LaunchGpu& each) {
    return std::tie(each.info.pci_address, each.driver_index, each.grant.gpu_index);
  };
  return static_cast<std::size_t>(
      std::ranges::count_if(gpus, [&](const LaunchGpu& each) { return place(each) < place(gpu); }));
}

}  // namespace

std::vector<std::string> cuda_devices(const std::vector<LaunchGpu>& gpus, CudaNames names,
                                      bool sees_others) {
  const bool has_uuids = names == CudaNames::kUuid ||
                         (names == CudaNames::kAuto && std::ranges::any_of(gpus, is_mig_device));
  if (has_uuids) return uuids_of(gpus);
  std::vector<std::string> devices;
  devices.reserve(gpus.size());
  for (const LaunchGpu& gpu : gpus) {
    devices.push_back(fmt::format("{}", sees_others ? gpu.driver_index : place_among(gpus, gpu)));
  }
  return devices;
}

}  // namespace gpu_platform::execution
