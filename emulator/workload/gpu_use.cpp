#include "workload/gpu_use.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <optional>
#include <string_view>
#include <utility>

#include "stated_load.h"
#include "workload/workload.h"

namespace gpu_emulator {
namespace {

void state_load(std::uint64_t memory_bytes, std::uint32_t percent) {
  char name[32];
  snprintf(name, sizeof name, kStatedLoad, static_cast<unsigned>(percent),
           static_cast<unsigned>(std::min<std::uint64_t>(memory_bytes >> 20, 999'999)));
  prctl(PR_SET_NAME, name);
}

std::uint64_t own_pid() {
  return static_cast<std::uint64_t>(::getpid());
}

}  // namespace

Result<OpenBoard> open_used_board() {
  using gpu_platform::base::ErrorCode;
  const char* path = std::getenv("GPU_EMULATOR_STATE");
  if (path == nullptr || *path == '\0') {
    return gpu_platform::base::fail(
        ErrorCode::kNotFound,
        "GPU_EMULATOR_STATE is not set: no emulated GPUs here. The program uses emulated GPUs "
        "alone; run it in a job on an emulated node, or under `gpu-emulator env`");
  }
  auto file = StateFile::open(path, StateFile::Access::kWrite);
  if (file) return OpenBoard{*std::move(file)};
  if (file.error().code != ErrorCode::kPermissionDenied) return std::unexpected(file.error());
  TRY_ASSIGN(StateFile readable, StateFile::open(path, StateFile::Access::kRead));
  return OpenBoard{std::move(readable), false};
}

Result<std::vector<std::uint32_t>> gpus_to_use(const StateFile& file) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  TRY_ASSIGN(auto gpus,
             visible_gpus(file.state(),
                          visible == nullptr ? std::optional<std::string_view>()
                                             : std::optional<std::string_view>(visible),
                          known_gpus(file.state(), std::getenv("GPU_EMULATOR_DEVICES"))));
  if (!gpus.empty()) return gpus;
  return gpu_platform::base::fail(gpu_platform::base::ErrorCode::kNotFound,
                                  "CUDA_VISIBLE_DEVICES is empty: no GPU may be used");
}

GpuUse::~GpuUse() {
  if (!is_ours_) return;
  for (const std::uint32_t gpu : gpus_) (void)file_.clear(gpu, own_pid());
}

Status GpuUse::set(std::uint64_t memory_bytes, std::uint32_t percent) {
  if (!is_ours_) {
    state_load(memory_bytes, percent);
    return {};
  }
  for (const std::uint32_t gpu : gpus_) TRY(file_.load(gpu, own_pid(), memory_bytes, percent));
  return {};
}

}  // namespace gpu_emulator
