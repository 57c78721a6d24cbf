#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hardware/gpu_library.h"
#include "node/driver/driver_order.h"

namespace gpu_platform::node {

// The driver's library, opened, with the GPUs that it lists. While it is open this process is a
// client of all of them.
struct OpenedGpus {
  std::unique_ptr<hardware::GpuLibrary> library;  // null: see `problem`
  std::vector<hardware::GpuDescription> gpus;
  std::string problem;

  // Null: the driver does not list it.
  const hardware::GpuDescription* find(const std::string& uuid) const;
};

OpenedGpus open_gpus(const std::string& library);

// Why there is no GPU of that UUID, for people.
std::string words_for_unlisted(const OpenedGpus& opened);

}  // namespace gpu_platform::node
