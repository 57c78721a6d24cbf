#include "tool/mig_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "mig_files.h"

namespace gpu_emulator {
namespace {

std::uint32_t count_of(const BoardState& state) {
  return std::min(state.gpu_count, kMaxGpus);
}

NodeFile capability(const std::string& name, std::uint32_t minor, unsigned mode) {
  char text[96];
  write_capability_text(text, minor, mode);
  return {fmt::format("{}/{}", kCapabilityFolder, name), text};
}

// Calls `visit(gpu, id)` for each GPU instance and each compute instance.
template <class Visit>
void visit_instances(const BoardState& state, Visit visit) {
  for (std::uint32_t i = 0; i < count_of(state); ++i) {
    const GpuState& gpu = state.gpus[i];
    for (std::uint32_t k = 0; k < kMaxGpuInstances; ++k) {
      if (is_there(gpu, {k, kNoId})) visit(gpu, InstanceId{k, kNoId});
    }
    visit_compute_instances(gpu, [&](const InstanceId& id) {
      visit(gpu, id);
      return false;
    });
  }
}

// The driver has numbers for 32 GPUs, whatever there is.
std::string minors() {
  constexpr std::uint32_t kGpus = 32;
  std::string text = fmt::format("config {}\nmonitor {}\n", kMigConfigMinor, kMigMonitorMinor);
  for (std::uint32_t gpu = 0; gpu < kGpus; ++gpu) {
    for (std::uint32_t i = 0; i < kMaxGpuInstances; ++i) {
      text += fmt::format("gpu{}/gi{}/access {}\n", gpu, i, capability_minor(gpu, {i, kNoId}));
      for (std::uint32_t k = 0; k < kMaxComputeInstances; ++k) {
        text +=
            fmt::format("gpu{}/gi{}/ci{}/access {}\n", gpu, i, k, capability_minor(gpu, {i, k}));
      }
    }
  }
  return text;
}

}  // namespace

bool board_has_mig(const BoardState& state) {
  return std::any_of(state.gpus, state.gpus + count_of(state), has_mig);
}

std::vector<NodeFile> mig_files_of(const BoardState& state) {
  std::vector<NodeFile> files{capability("mig/config", kMigConfigMinor, kModeOfConfig),
                              capability("mig/monitor", kMigMonitorMinor, kModeOfAccess),
                              {kMigMinorsFile, minors()}};
  visit_instances(state, [&](const GpuState& gpu, const InstanceId& id) {
    char folder[64];
    write_instance_folder(folder, gpu.minor, id);
    files.push_back(capability(fmt::format("{}/access", folder), capability_minor(gpu.minor, id),
                               kModeOfAccess));
  });
  return files;
}

std::vector<std::string> mig_devices_of(const BoardState& state) {
  std::vector<std::uint32_t> numbers{kMigConfigMinor, kMigMonitorMinor};
  visit_instances(state, [&](const GpuState& gpu, const InstanceId& id) {
    numbers.push_back(capability_minor(gpu.minor, id));
  });
  std::vector<std::string> names;
  for (const std::uint32_t number : numbers) {
    names.push_back(fmt::format("nvidia-caps/nvidia-cap{}", number));
  }
  return names;
}

}  // namespace gpu_emulator
