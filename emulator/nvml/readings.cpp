#include <time.h>

#include "nvml/board.h"
#include "nvml/rates.h"

// Calls about changing properties: modes, limits, readings.

using gpu_emulator::board;
using gpu_emulator::get;
using gpu_emulator::GpuReading;
using gpu_emulator::GpuState;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kNotSupported;
using gpu_emulator::kSuccess;
using gpu_emulator::kUninitialized;
using gpu_emulator::read_gpu;
using gpu_emulator::Support;
using gpu_emulator::value_of;
using gpu_emulator::with_gpu;

namespace {

constexpr unsigned int kClockGraphics = 0;
constexpr unsigned int kClockSm = 1;
constexpr unsigned int kClockMemory = 2;
constexpr unsigned int kClockVideo = 3;

template <class Value, class Read>
nvmlReturn_t get_reading(nvmlDevice_t device, Value* out, Read read) {
  return get(device, out, [&](const GpuState& gpu) { return read(read_gpu(gpu)); });
}

// Counters of engines that the boards' loads do not use.
nvmlReturn_t get_idle_engine(nvmlDevice_t device, unsigned int* percent, unsigned int* period_us) {
  if (board() == nullptr) return kUninitialized;
  if (percent == nullptr || period_us == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (gpu_emulator::is_mig_on(gpu)) return kNotSupported;
    constexpr unsigned int kSamplingPeriodUs = 167'000;
    *percent = 0;
    *period_us = kSamplingPeriodUs;
    return kSuccess;
  });
}

// The memory of a GPU, or of the GPU instance that a compute instance lies in: they share it.
struct MemoryUse {
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
};

MemoryUse memory_use(const GpuState& gpu, const gpu_emulator::InstanceId& id) {
  const GpuReading now = read_gpu(gpu);
  if (gpu_emulator::is_whole_gpu(id)) return {gpu.memory_bytes, gpu.reserved_bytes, now.free_bytes};
  const std::uint64_t total = gpu_emulator::usable_bytes(gpu, id);
  std::uint64_t used = 0;
  for (std::uint32_t i = 0; i < now.process_count; ++i) {
    if (now.processes[i].instance.gpu_instance != id.gpu_instance) continue;
    used += now.processes[i].memory_bytes;
  }
  return {total, 0, used < total ? total - used : 0};
}

enum class ClockOf { kNow, kApplications, kMaximum };

struct Clocks {
  std::uint32_t sm_mhz;
  std::uint32_t memory_mhz;
};

Clocks clocks_of(const GpuState& gpu, ClockOf which) {
  switch (which) {
    case ClockOf::kMaximum:
      return {gpu.clock_sm_max_mhz, gpu.clock_memory_max_mhz};
    case ClockOf::kApplications:
      return {gpu_emulator::application_sm_mhz(gpu), gpu_emulator::application_memory_mhz(gpu)};
    default:
      const GpuReading now = read_gpu(gpu);
      return {now.clock_sm_mhz, now.clock_memory_mhz};
  }
}

nvmlReturn_t get_clock(nvmlDevice_t device, unsigned int clock, unsigned int* mhz, ClockOf which) {
  if (clock > kClockVideo) return board() == nullptr ? kUninitialized : kInvalidArgument;
  return get(device, mhz, [&](const GpuState& gpu) {
    const Clocks clocks = clocks_of(gpu, which);
    if (clock == kClockMemory) return clocks.memory_mhz;
    const std::uint32_t sm = clocks.sm_mhz;
    // The video engines run somewhat slower than the SMs, which share the graphics clock.
    return clock == kClockGraphics || clock == kClockSm ? sm : sm * 9 / 10;
  });
}

}  // namespace

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned int* mode) {
  if (board() == nullptr) return kUninitialized;
  if (mode == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (gpu.persistence == Support::kUnsupported) return kNotSupported;
    *mode = gpu_emulator::persistence_of(gpu) == Support::kOn ? 1 : 0;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned int* mode) {
  return get(device, mode,
             [](const GpuState& gpu) { return value_of(gpu.settings.compute_mode) % 4; });
}

nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, unsigned int* mode) {
  return get(device, mode, [](const GpuState&) { return 0u; });
}

nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, unsigned int* is_active) {
  return get(device, is_active, [](const GpuState&) { return 0u; });
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned int* limit_mw) {
  return get(device, limit_mw, gpu_emulator::power_limit_mw);
}

nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned int* limit_mw) {
  return get(device, limit_mw, [](const GpuState& gpu) { return gpu.power_limit_max_mw; });
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int* min_mw,
                                                          unsigned int* max_mw) {
  if (board() == nullptr) return kUninitialized;
  if (min_mw == nullptr || max_mw == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    *min_mw = gpu.power_limit_min_mw;
    *max_mw = gpu.power_limit_max_mw;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned int* limit_mw) {
  return get(device, limit_mw, gpu_emulator::power_limit_mw);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned int clock, unsigned int* mhz) {
  return get_clock(device, clock, mhz, ClockOf::kMaximum);
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, unsigned int threshold,
                                               unsigned int* degrees) {
  if (board() == nullptr) return kUninitialized;
  if (degrees == nullptr || threshold > 7) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    constexpr std::uint32_t kMemoryMaxC = 95;
    const bool has_greatest = gpu.architecture < gpu_emulator::kAda;  // later ones: field values
    switch (threshold) {
      case 0:
        *degrees = gpu.temperature_shutdown_c;
        return kSuccess;
      case 1:
        *degrees = gpu.temperature_slowdown_c;
        return kSuccess;
      case 2:  // of the memory
        *degrees = kMemoryMaxC;
        return has_greatest && gpu.has_memory_temperature != 0 ? kSuccess : kNotSupported;
      case 3:  // in operation
        *degrees = gpu_emulator::greatest_temperature_c(gpu);
        return has_greatest ? kSuccess : kNotSupported;
      default:  // noise, which boards without fans have no limits for
        return kNotSupported;
    }
  });
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, gpu_emulator::Memory* memory) {
  if (board() == nullptr) return kUninitialized;
  if (memory == nullptr) return kInvalidArgument;
  return gpu_emulator::with_device(device, [&](const GpuState& gpu, const auto& asked) {
    const MemoryUse use = memory_use(gpu, asked.instance);
    *memory = {use.total, use.free, use.total - use.free};
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, gpu_emulator::MemoryV2* memory) {
  if (board() == nullptr) return kUninitialized;
  if (memory == nullptr) return kInvalidArgument;
  if (memory->version != gpu_emulator::kMemoryV2Version) {
    return gpu_emulator::kArgumentVersionMismatch;
  }
  return gpu_emulator::with_device(device, [&](const GpuState& gpu, const auto& asked) {
    const MemoryUse use = memory_use(gpu, asked.instance);
    *memory = {memory->version, use.total, use.reserved, use.free,
               use.total - use.reserved - use.free};
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, gpu_emulator::Utilization* rates) {
  if (board() == nullptr) return kUninitialized;
  if (rates == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (gpu_emulator::is_mig_on(gpu)) return kNotSupported;  // utilization is not defined with MIG
    const GpuReading now = read_gpu(gpu);
    *rates = {now.utilization_percent, now.memory_utilization_percent};
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned int sensor,
                                      unsigned int* degrees) {
  if (sensor != 0) return board() == nullptr ? kUninitialized : kInvalidArgument;
  return get_reading(device, degrees, [](const GpuReading& now) { return now.temperature_c; });
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device,
                                       gpu_emulator::TemperatureV1* temperature) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  if (board() == nullptr) return kUninitialized;
  if (temperature == nullptr) return kInvalidArgument;
  if (temperature->version != gpu_emulator::kTemperatureV1Version) {
    return gpu_emulator::kArgumentVersionMismatch;
  }
  if (temperature->sensor != 0) return kInvalidArgument;
  return get_reading(device, &temperature->temperature,
                     [](const GpuReading& now) { return now.temperature_c; });
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int* power_mw) {
  return get_reading(device, power_mw, [](const GpuReading& now) { return now.power_mw; });
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned int clock, unsigned int* mhz) {
  return get_clock(device, clock, mhz, ClockOf::kNow);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, unsigned int* state) {
  return get_reading(device, state, [](const GpuReading& now) { return now.performance_state; });
}

nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, unsigned int* state) {
  return nvmlDeviceGetPerformanceState(device, state);
}

nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, unsigned int* mode) {
  return get(device, mode, [](const GpuState&) { return 1u; });
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, gpu_emulator::Bar1Memory* memory) {
  if (board() == nullptr) return kUninitialized;
  if (memory == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    constexpr unsigned long long kUsed = 2ull << 20;  // the driver's own
    *memory = {gpu.bar1_bytes, gpu.bar1_bytes - kUsed, kUsed};
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int* percent,
                                             unsigned int* period_us) {
  return get_idle_engine(device, percent, period_us);
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int* percent,
                                             unsigned int* period_us) {
  return get_idle_engine(device, percent, period_us);
}

nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t device, unsigned int* percent,
                                         unsigned int* period_us) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  return get_idle_engine(device, percent, period_us);
}

nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t device, unsigned int* percent,
                                         unsigned int* period_us) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  return get_idle_engine(device, percent, period_us);
}

nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device,
                                            gpu_emulator::MarginTemperature* margin) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  return gpu_emulator::fill_versioned(device, margin, 1, [&](const GpuState& gpu) {
    if (gpu.architecture < gpu_emulator::kAda) return kNotSupported;
    margin->margin = static_cast<int>(gpu_emulator::greatest_temperature_c(gpu)) -
                     static_cast<int>(read_gpu(gpu).temperature_c);
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
                                                 unsigned long long* millijoules) {
  if (board() == nullptr) return kUninitialized;
  if (millijoules == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState&, std::uint32_t index) {
    *millijoules = gpu_emulator::totals_of(index).energy_uj / 1000;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, unsigned int clock, unsigned int id,
                                unsigned int* mhz) {
  // nvmlClockId_t: now, what applications ask for and its default, the customer's boost limit.
  constexpr unsigned int kLastId = 3;
  if (id > kLastId) return board() == nullptr ? kUninitialized : kInvalidArgument;
  constexpr ClockOf kOf[] = {ClockOf::kNow, ClockOf::kApplications, ClockOf::kMaximum,
                             ClockOf::kMaximum};
  return get_clock(device, clock, mhz, kOf[id]);
}

nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, unsigned int clock,
                                                unsigned int* mhz) {
  return get_clock(device, clock, mhz, ClockOf::kMaximum);
}

nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, unsigned int clock,
                                            unsigned int* mhz) {
  return get_clock(device, clock, mhz, ClockOf::kApplications);
}

nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, unsigned int clock,
                                                   unsigned int* mhz) {
  return get_clock(device, clock, mhz, ClockOf::kMaximum);
}

nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned int* count,
                                                unsigned int* mhz) {
  if (board() == nullptr) return kUninitialized;
  if (count == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    const unsigned int found = gpu.clock_memory_idle_mhz == gpu.clock_memory_max_mhz ? 1 : 2;
    return gpu_emulator::list_of(count, mhz, found, [&](unsigned int i, unsigned int* out) {
      *out = i == 0 ? gpu.clock_memory_max_mhz : gpu.clock_memory_idle_mhz;
    });
  });
}

nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned int memory_mhz,
                                                  unsigned int* count, unsigned int* mhz) {
  if (board() == nullptr) return kUninitialized;
  if (count == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (memory_mhz != gpu.clock_memory_max_mhz && memory_mhz != gpu.clock_memory_idle_mhz) {
      return gpu_emulator::kNotFound;
    }
    const unsigned int found =
        (gpu.clock_sm_max_mhz - gpu.clock_sm_idle_mhz) / gpu_emulator::kClockStepMhz + 1;
    return gpu_emulator::list_of(count, mhz, found, [&](unsigned int i, unsigned int* out) {
      *out = gpu.clock_sm_max_mhz - i * gpu_emulator::kClockStepMhz;
    });
  });
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                    unsigned long long* reasons) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  return get_reading(device, reasons, [](const GpuReading& now) { return now.throttle; });
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                       unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device,
                                                      unsigned long long* reasons) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  constexpr unsigned long long kAll = 0x1ff;
  return get(device, reasons, [](const GpuState&) { return kAll; });
}

nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device,
                                                         unsigned long long* reasons) {
  return nvmlDeviceGetSupportedClocksEventReasons(device, reasons);
}

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, unsigned int policy,
                                          gpu_emulator::ViolationTime* time) {
  // nvmlPerfPolicyType_t; the boards hold their clocks down for two of its reasons.
  constexpr unsigned int kPower = 0;
  constexpr unsigned int kThermal = 1;
  constexpr unsigned int kLastPolicy = 11;
  if (board() == nullptr) return kUninitialized;
  if (time == nullptr || policy > kLastPolicy) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState&, std::uint32_t index) {
    const gpu_emulator::Totals totals = gpu_emulator::totals_of(index);
    const std::uint64_t held_us = policy == kPower     ? totals.power_capped_us
                                  : policy == kThermal ? totals.thermal_slowdown_us
                                                       : 0;
    *time = {totals.at_ns / 1000, held_us * 1000};
    return kSuccess;
  });
}

// The real call watches the link for 20 ms and blocks the caller as long.
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, unsigned int counter,
                                         unsigned int* kilobytes_per_second) {
  constexpr long kWatchNs = 20'000'000;
  if (board() == nullptr) return kUninitialized;
  if (kilobytes_per_second == nullptr || counter > 1) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    timespec left{0, kWatchNs};
    while (nanosleep(&left, &left) != 0) {
    }
    const std::uint32_t percent = read_gpu(gpu).utilization_percent;
    const auto rate = gpu_emulator::pcie_kilobytes_per_second(gpu, percent);
    *kilobytes_per_second = static_cast<unsigned int>(counter == 0 ? rate / 4 : rate);  // out, in
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned int* count) {
  return get(device, count,
             [](const GpuState& gpu) { return gpu.pcie_replays.load(std::memory_order_relaxed); });
}

// One sample, of now: the boards keep no history.
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, unsigned int type,
                                  unsigned long long last_seen, unsigned int* value_type,
                                  unsigned int* count, gpu_emulator::Sample* samples) {
  // nvmlSamplingType_t
  constexpr unsigned int kPower = 0;
  constexpr unsigned int kGpu = 1;
  constexpr unsigned int kMemory = 2;
  constexpr unsigned int kProcessorClock = 5;
  constexpr unsigned int kMemoryClock = 6;
  if (board() == nullptr) return kUninitialized;
  if (value_type == nullptr || count == nullptr || type > 9) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    const GpuReading now = read_gpu(gpu);
    const unsigned long long time_us = gpu_emulator::now_ns(CLOCK_REALTIME) / 1000;
    if (last_seen >= time_us) return gpu_emulator::kNotFound;
    *value_type = gpu_emulator::kValueUint;
    const unsigned int capacity = *count;
    *count = 1;
    if (samples == nullptr) return kSuccess;
    if (capacity == 0) return gpu_emulator::kInsufficientSize;
    samples[0] = {time_us, {}};
    unsigned int& value = samples[0].value.uint_value;
    switch (type) {
      case kPower:
        value = now.power_mw;
        break;
      case kGpu:
        value = now.utilization_percent;
        break;
      case kMemory:
        value = now.memory_utilization_percent;
        break;
      case kProcessorClock:
        value = now.clock_sm_mhz;
        break;
      case kMemoryClock:
        value = now.clock_memory_mhz;
        break;
      default:
        value = 0;
    }
    return kSuccess;
  });
}
