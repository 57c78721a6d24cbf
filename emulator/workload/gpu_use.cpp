#include "workload/gpu_use.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "mig_names.h"
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

using gpu_platform::base::ErrorCode;
using gpu_platform::base::fail;

Result<UsedGpu> find_instance(const BoardState& state, const std::string& uuid,
                              const std::vector<std::uint32_t>& known) {
  for (const std::uint32_t gpu : known) {
    UsedGpu found{gpu, {}};
    if (find_mig_uuid(state.gpus[gpu], uuid.c_str(), uuid.size(), &found.instance)) return found;
  }
  return fail(
      ErrorCode::kNotFound,
      fmt::format("CUDA_VISIBLE_DEVICES: no MIG instance \"{}\" on {}", uuid, state.node_name));
}

std::uint64_t own_pid() {
  return static_cast<std::uint64_t>(::getpid());
}

}  // namespace

Result<OpenBoard> open_used_board() {
  const char* path = std::getenv("GPU_EMULATOR_STATE");
  if (path == nullptr || *path == '\0') {
    return fail(
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

Result<std::vector<UsedGpu>> gpus_to_use(const StateFile& file) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string_view named = visible == nullptr ? "" : visible;
  const auto known = known_gpus(file.state(), std::getenv("GPU_EMULATOR_DEVICES"));
  if (named.starts_with("MIG-")) {
    TRY_ASSIGN(const UsedGpu found,
               find_instance(file.state(), std::string(named.substr(0, named.find(','))), known));
    return std::vector{found};
  }
  TRY_ASSIGN(const auto gpus,
             visible_gpus(file.state(),
                          visible == nullptr ? std::optional<std::string_view>()
                                             : std::optional<std::string_view>(visible),
                          known));
  std::vector<UsedGpu> used;
  for (const std::uint32_t gpu : gpus) {
    const GpuState& state = file.state().gpus[gpu];
    if (!is_mig_on(state)) {
      used.push_back({gpu, {}});
      continue;
    }
    visit_compute_instances(state, [&](const InstanceId& id) {
      used.push_back({gpu, id});
      return true;
    });
  }
  if (!used.empty()) return used;
  return fail(ErrorCode::kNotFound, gpus.empty()
                                        ? "CUDA_VISIBLE_DEVICES is empty: no GPU may be used"
                                        : "the GPUs are in MIG mode and have no instance");
}

GpuUse::~GpuUse() {
  if (!is_ours_) return;
  for (const UsedGpu& each : gpus_) (void)file_.clear(each.gpu, own_pid());
}

Status GpuUse::set(std::uint64_t memory_bytes, std::uint32_t percent) {
  if (!is_ours_) {
    state_load(memory_bytes, percent);
    return {};
  }
  for (const UsedGpu& each : gpus_) {
    TRY(file_.load(each.gpu, own_pid(), memory_bytes, percent, StateFile::Presence::kWhileAlive,
                   each.instance));
  }
  return {};
}

}  // namespace gpu_emulator
