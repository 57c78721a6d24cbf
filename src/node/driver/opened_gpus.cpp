#include "node/driver/opened_gpus.h"

#include <algorithm>
#include <utility>

#include "hardware/nvml/nvml_library.h"

namespace gpu_platform::node {

const hardware::GpuDescription* OpenedGpus::find(const std::string& uuid) const {
  const auto found = std::ranges::find(gpus, uuid, &hardware::GpuDescription::uuid);
  return found == gpus.end() ? nullptr : &*found;
}

OpenedGpus open_gpus(const std::string& library) {
  OpenedGpus opened;
  auto nvml = hardware::open_nvml(library);
  if (!nvml) {
    opened.problem = nvml.error().message;
    return opened;
  }
  auto gpus = (*nvml)->list_gpus();
  if (!gpus) {
    opened.problem = gpus.error().message;
    return opened;
  }
  opened.library = std::move(*nvml);
  opened.gpus = std::move(*gpus);
  return opened;
}

std::string words_for_unlisted(const OpenedGpus& opened) {
  if (!opened.problem.empty()) return opened.problem;
  for (const hardware::GpuDescription& gpu : opened.gpus) {
    if (!gpu.uuid && !gpu.problem.empty()) {
      return "the driver does not list it, and says of one GPU: " + gpu.problem;
    }
  }
  return "the driver does not list it";
}

}  // namespace gpu_platform::node
