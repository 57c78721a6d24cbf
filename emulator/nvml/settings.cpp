#include "nvml/board.h"
#include "nvml/rates.h"

// Calls that set something: power limit, clocks, modes. What is set lies in the board's state, so
// that every process sees it, and stays until it is set anew. A call is refused in the order
// NOT_SUPPORTED, INVALID_ARGUMENT, NO_PERMISSION.

using gpu_emulator::board;
using gpu_emulator::get;
using gpu_emulator::GpuState;
using gpu_emulator::is_within;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kNotSupported;
using gpu_emulator::kSuccess;
using gpu_emulator::kUninitialized;
using gpu_emulator::PowerValueV2;
using gpu_emulator::set;
using gpu_emulator::Settings;
using gpu_emulator::Support;
using gpu_emulator::value_of;
using gpu_emulator::with_gpu;

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

nvmlReturn_t always(const GpuState&) {
  return kSuccess;
}

// One field takes one value.
template <class Check>
nvmlReturn_t set_field(nvmlDevice_t device, std::atomic<std::uint32_t> Settings::* field,
                       std::uint32_t value, Check check) {
  return set(device, check, [&](GpuState& gpu) { (gpu.settings.*field).store(value, kRelaxed); });
}

std::uint32_t support(unsigned int is_on) {
  return static_cast<std::uint32_t>(is_on != 0 ? Support::kOn : Support::kOff);
}

nvmlReturn_t set_power_limit(nvmlDevice_t device, unsigned int limit_mw) {
  return set_field(device, &Settings::power_limit_mw, limit_mw, [&](const GpuState& gpu) {
    return is_within(gpu.power_limit_min_mw, limit_mw, gpu.power_limit_max_mw) ? kSuccess
                                                                               : kInvalidArgument;
  });
}

bool is_memory_clock(const GpuState& gpu, unsigned int mhz) {
  return mhz == gpu.clock_memory_idle_mhz || mhz == gpu.clock_memory_max_mhz;
}

bool is_graphics_clock(const GpuState& gpu, unsigned int mhz) {
  return is_within(gpu.clock_sm_idle_mhz, mhz, gpu.clock_sm_max_mhz) &&
         (gpu.clock_sm_max_mhz - mhz) % gpu_emulator::kClockStepMhz == 0;
}

// Application clocks are root's until the restriction is lifted.
nvmlReturn_t set_application_clocks(nvmlDevice_t device, unsigned int memory_mhz,
                                    unsigned int sm_mhz) {
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t index) {
    const bool is_reset = memory_mhz == 0;
    if (!is_reset && !(is_memory_clock(gpu, memory_mhz) && is_graphics_clock(gpu, sm_mhz))) {
      return kInvalidArgument;
    }
    if (geteuid() != 0 && value_of(gpu.settings.are_clocks_for_all) == 0) {
      return gpu_emulator::kNoPermission;
    }
    return gpu_emulator::change(index, [&](GpuState& to) {
      to.settings.application_memory_mhz.store(memory_mhz, kRelaxed);
      to.settings.application_sm_mhz.store(sm_mhz, kRelaxed);
    });
  });
}

// Symbols that stand for a clock: the one of the thermal design power (our boards' greatest), and
// no limit.
constexpr unsigned int kTdp = 0xffffff01;
constexpr unsigned int kUnlimited = 0xffffff02;
bool is_symbol(unsigned int mhz) {
  return mhz == kTdp || mhz == kUnlimited;
}

struct Range {
  std::uint32_t low;
  std::uint32_t high;  // 0: unlocked
};

// Reads a lock of the SM clock. Returns false if it means nothing.
bool read_lock(const GpuState& gpu, unsigned int low, unsigned int high, Range* out) {
  if (is_symbol(low) != is_symbol(high)) return false;
  if (is_symbol(low)) {
    const bool is_free = low == kUnlimited;
    *out = is_free ? Range{0, 0} : Range{gpu.clock_sm_max_mhz, gpu.clock_sm_max_mhz};
    return true;
  }
  // The driver takes the nearest clock it has.
  const std::uint32_t greatest = gpu.clock_sm_max_mhz;
  *out = {low < greatest ? low : greatest, high < greatest ? high : greatest};
  return low <= high && high >= gpu.clock_sm_idle_mhz;
}

nvmlReturn_t unlock(nvmlDevice_t device, std::atomic<std::uint32_t> Settings::* low,
                    std::atomic<std::uint32_t> Settings::* high) {
  return set(device, always, [&](GpuState& gpu) {
    (gpu.settings.*low).store(0, kRelaxed);
    (gpu.settings.*high).store(0, kRelaxed);
  });
}

nvmlReturn_t has_memory_lock(const GpuState& gpu) {
  return gpu.architecture >= gpu_emulator::kAmpere ? kSuccess : kNotSupported;
}

}  // namespace

nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned int limit_mw) {
  return set_power_limit(device, limit_mw);
}

nvmlReturn_t nvmlDeviceSetPowerManagementLimit_v2(nvmlDevice_t device, PowerValueV2* value) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  constexpr unsigned char kLastScope = 2;
  return gpu_emulator::fill_versioned(device, value, 2, [&](const GpuState&) {
    if (value->scope > kLastScope) return kInvalidArgument;
    // A module's limit is for boards with a CPU beside the GPU.
    return value->scope == 0 ? set_power_limit(device, value->power_mw) : kNotSupported;
  });
}

nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, unsigned int mode) {
  return set_field(device, &Settings::persistence, support(mode), [&](const GpuState& gpu) {
    if (gpu.persistence == Support::kUnsupported) return kNotSupported;
    return mode <= 1 ? kSuccess : kInvalidArgument;
  });
}

nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, unsigned int mode) {
  constexpr unsigned int kExclusiveThread = 1;  // gone since CUDA 8
  constexpr unsigned int kLastMode = 3;
  return set_field(device, &Settings::compute_mode, mode, [&](const GpuState& gpu) {
    if (gpu_emulator::is_mig_on(gpu) || mode == kExclusiveThread) return kNotSupported;
    return mode <= kLastMode ? kSuccess : kInvalidArgument;
  });
}

nvmlReturn_t nvmlDeviceSetEccMode(nvmlDevice_t device, unsigned int mode) {
  return set_field(device, &Settings::ecc_pending, support(mode), [&](const GpuState& gpu) {
    if (gpu.ecc == Support::kUnsupported) return kNotSupported;
    return mode <= 1 ? kSuccess : kInvalidArgument;
  });
}

nvmlReturn_t nvmlDeviceClearEccErrorCounts(nvmlDevice_t device, unsigned int counter_type) {
  const auto check = [&](const GpuState& gpu) {
    if (gpu.ecc != Support::kOn) return kNotSupported;
    return counter_type <= gpu_emulator::kEccAggregate ? kSuccess : kInvalidArgument;
  };
  return set(device, check, [&](GpuState& gpu) {
    for (auto& count : gpu.ecc_errors[counter_type]) count.store(0, kRelaxed);
  });
}

nvmlReturn_t nvmlDeviceSetApplicationsClocks(nvmlDevice_t device, unsigned int memory_mhz,
                                             unsigned int sm_mhz) {
  if (memory_mhz == 0) return board() == nullptr ? kUninitialized : kInvalidArgument;
  return set_application_clocks(device, memory_mhz, sm_mhz);
}

nvmlReturn_t nvmlDeviceResetApplicationsClocks(nvmlDevice_t device) {
  return set_application_clocks(device, 0, 0);
}

nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, unsigned int low_mhz,
                                          unsigned int high_mhz) {
  Range range{};
  const auto check = [&](const GpuState& gpu) {
    return read_lock(gpu, low_mhz, high_mhz, &range) ? kSuccess : kInvalidArgument;
  };
  return set(device, check, [&](GpuState& gpu) {
    gpu.settings.locked_sm_min_mhz.store(range.low, kRelaxed);
    gpu.settings.locked_sm_max_mhz.store(range.high, kRelaxed);
  });
}

nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t device) {
  return unlock(device, &Settings::locked_sm_min_mhz, &Settings::locked_sm_max_mhz);
}

nvmlReturn_t nvmlDeviceSetMemoryLockedClocks(nvmlDevice_t device, unsigned int low_mhz,
                                             unsigned int high_mhz) {
  const auto check = [&](const GpuState& gpu) {
    if (const nvmlReturn_t refused = has_memory_lock(gpu); refused != kSuccess) return refused;
    const bool is_valid = low_mhz <= high_mhz &&
                          is_within(gpu.clock_memory_idle_mhz, high_mhz, gpu.clock_memory_max_mhz);
    return is_valid ? kSuccess : kInvalidArgument;
  };
  return set(device, check, [&](GpuState& gpu) {
    gpu.settings.locked_memory_min_mhz.store(low_mhz, kRelaxed);
    gpu.settings.locked_memory_max_mhz.store(high_mhz, kRelaxed);
  });
}

nvmlReturn_t nvmlDeviceResetMemoryLockedClocks(nvmlDevice_t device) {
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (const nvmlReturn_t refused = has_memory_lock(gpu); refused != kSuccess) return refused;
    return unlock(device, &Settings::locked_memory_min_mhz, &Settings::locked_memory_max_mhz);
  });
}

// nvmlRestrictedAPI_t: application clocks, and boost, which these boards do not let anyone set.
nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_t device, unsigned int api,
                                         unsigned int* is_restricted) {
  if (board() == nullptr) return kUninitialized;
  if (is_restricted == nullptr || api > 1) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (api == 1) return kNotSupported;
    *is_restricted = value_of(gpu.settings.are_clocks_for_all) == 0 ? 1 : 0;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceSetAPIRestriction(nvmlDevice_t device, unsigned int api,
                                         unsigned int is_restricted) {
  return set_field(device, &Settings::are_clocks_for_all, is_restricted == 0 ? 1 : 0,
                   [&](const GpuState&) {
                     if (api > 1 || is_restricted > 1) return kInvalidArgument;
                     return api == 0 ? kSuccess : kNotSupported;
                   });
}

// The counters of the boards' links are always zero, so there is nothing to reset.
nvmlReturn_t nvmlDeviceResetNvLinkErrorCounters(nvmlDevice_t device, unsigned int link) {
  return set(
      device,
      [&](const GpuState& gpu) {
        if (link_count(gpu) == 0) return kNotSupported;
        return link < link_count(gpu) ? kSuccess : kInvalidArgument;
      },
      [](GpuState&) {});
}
