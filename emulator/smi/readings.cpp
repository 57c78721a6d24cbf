#include "smi/readings.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <utility>

namespace gpu_emulator {

namespace {

// Does `make` with the value, if there is one.
template <class T, class Make>
Reading reading_of(const Told<T>& told, Make make) {
  return told.status == kSuccess ? make(told.value) : Reading::failure(told.status);
}

// The word of that place in a list, or "Unknown".
template <std::size_t kSize>
Reading word(const std::string_view (&words)[kSize], std::size_t place) {
  return {kSuccess, std::string(place < kSize ? words[place] : "Unknown")};
}

Reading hexadecimal(std::uint64_t value, int digits) {
  return {kSuccess, fmt::format("0x{:0{}X}", value, digits)};
}

template <class T>
Told<T> versioned(const Gpu& gpu, const char* function, unsigned int version) {
  Told<T> told;
  told.value.version = version_of<T>(version);
  told.status = gpu.call<Return(nvmlDevice_t, T*)>(function, &told.value);
  return told;
}

Told<unsigned long long> reasons_of(const Gpu& gpu, const char* function, const char* older) {
  using Reasons = decltype(nvmlDeviceGetCurrentClocksEventReasons);
  Told<unsigned long long> told;
  told.status = gpu.call<Reasons>(function, &told.value);
  if (told.status == kFunctionNotFound) told.status = gpu.call<Reasons>(older, &told.value);
  return told;
}

Told<std::pair<unsigned int, unsigned int>> limits_of(const Gpu& gpu) {
  return gpu.numbers("nvmlDeviceGetPowerManagementLimitConstraints");
}

Told<GpuFabricInfoV2> fabric_of(const Gpu& gpu) {
  auto told = versioned<GpuFabricInfoV2>(gpu, "nvmlDeviceGetGpuFabricInfoV", 2);
  constexpr unsigned char kNoFabric = 0;
  if (told.status == kSuccess && told.value.state == kNoFabric) told.status = kNotSupported;
  return told;
}

Told<unsigned int> action_of(const Gpu& gpu) {
  constexpr unsigned int kRecoveryAction = 230;
  const auto told = gpu.field(kRecoveryAction);
  return {told.status, told.value.value.uint_value};
}

constexpr unsigned int kResetAction = 1;
constexpr unsigned int kDrainAndResetAction = 4;

}  // namespace

Reading memory_of(const Gpu& gpu, MemoryPart part) {
  MemoryV2 memory{};
  memory.version = kMemoryV2Version;
  const Return status =
      gpu.call<decltype(nvmlDeviceGetMemoryInfo_v2)>("nvmlDeviceGetMemoryInfo_v2", &memory);
  if (status != kSuccess) return Reading::failure(status);
  switch (part) {
    case MemoryPart::kTotal:
      return mebibytes(memory.total);
    case MemoryPart::kReserved:
      return mebibytes(memory.reserved);
    case MemoryPart::kUsed:
      return mebibytes(memory.used);
    case MemoryPart::kFree:
      break;
  }
  return mebibytes(memory.free);
}

Reading bar1_of(const Gpu& gpu, MemoryPart part) {
  Bar1Memory memory{};
  const Return status =
      gpu.call<decltype(nvmlDeviceGetBAR1MemoryInfo)>("nvmlDeviceGetBAR1MemoryInfo", &memory);
  if (status != kSuccess) return Reading::failure(status);
  if (part == MemoryPart::kTotal) return mebibytes(memory.total);
  return mebibytes(part == MemoryPart::kUsed ? memory.used : memory.free);
}

Reading clock_of(const Gpu& gpu, Clock clock, ClockOf which) {
  Told<unsigned int> told;
  const auto kind = static_cast<unsigned int>(clock);
  const char* function = which == ClockOf::kNow            ? "nvmlDeviceGetClockInfo"
                         : which == ClockOf::kApplications ? "nvmlDeviceGetApplicationsClock"
                         : which == ClockOf::kDefault      ? "nvmlDeviceGetDefaultApplicationsClock"
                                                           : "nvmlDeviceGetMaxCustomerBoostClock";
  told.status = gpu.call<decltype(nvmlDeviceGetClockInfo)>(function, kind, &told.value);
  return reading_of(told, [](unsigned int mhz) { return number(mhz, "MHz"); });
}

Reading max_clock_of(const Gpu& gpu, Clock clock) {
  Told<unsigned int> told;
  told.status = gpu.call<decltype(nvmlDeviceGetMaxClockInfo)>(
      "nvmlDeviceGetMaxClockInfo", static_cast<unsigned int>(clock), &told.value);
  return reading_of(told, [](unsigned int mhz) { return number(mhz, "MHz"); });
}

Reading pci_of(const Gpu& gpu, PciPart part) {
  return reading_of(gpu.pci(), [&](const PciInfo& pci) {
    switch (part) {
      case PciPart::kDomain:
        return hexadecimal(pci.domain, 4);
      case PciPart::kBus:
        return hexadecimal(pci.bus, 2);
      case PciPart::kDevice:
        return hexadecimal(pci.device, 2);
      case PciPart::kDeviceId:
        return hexadecimal(pci.pci_device_id, 8);
      case PciPart::kSubsystemId:
        break;
    }
    return hexadecimal(pci.pci_subsystem_id, 8);
  });
}

Reading ecc_of(const Gpu& gpu, EccKind kind, EccTime time, EccPlace place) {
  Told<unsigned long long> told;
  const auto error_type = static_cast<unsigned int>(kind);
  const auto counter_type = static_cast<unsigned int>(time);
  if (place == EccPlace::kTotal) {
    told.status = gpu.call<decltype(nvmlDeviceGetTotalEccErrors)>(
        "nvmlDeviceGetTotalEccErrors", error_type, counter_type, &told.value);
  } else {
    told.status = gpu.call<decltype(nvmlDeviceGetMemoryErrorCounter)>(
        "nvmlDeviceGetMemoryErrorCounter", error_type, counter_type,
        static_cast<unsigned int>(place), &told.value);
  }
  return reading_of(told, [](unsigned long long count) { return number(count); });
}

Reading sram_of(const Gpu& gpu, unsigned int place) {
  const auto told = versioned<EccSramErrorStatus>(gpu, "nvmlDeviceGetSramEccErrorStatus", 1);
  return reading_of(told, [&](const EccSramErrorStatus& status) {
    if (place >= std::size(status.counts)) return yes(status.is_threshold_exceeded != 0);
    return number(status.counts[place]);
  });
}

Reading remapped_of(const Gpu& gpu, RemappedPart part) {
  std::array<unsigned int, 4> parts{};
  const Return status = gpu.call<decltype(nvmlDeviceGetRemappedRows)>(
      "nvmlDeviceGetRemappedRows", &parts[0], &parts[1], &parts[2], &parts[3]);
  if (status != kSuccess) return Reading::failure(status);
  const unsigned int value = parts[static_cast<std::size_t>(part)];
  const bool is_count = part == RemappedPart::kCorrected || part == RemappedPart::kUncorrected;
  return is_count ? number(value) : yes(value != 0);
}

Reading histogram_of(const Gpu& gpu, HistogramPart part) {
  RowRemapperHistogram found{};
  const Return status = gpu.call<decltype(nvmlDeviceGetRowRemapperHistogram)>(
      "nvmlDeviceGetRowRemapperHistogram", &found);
  if (status != kSuccess) return Reading::failure(status);
  const unsigned int banks[] = {found.max, found.high, found.partial, found.low, found.none};
  return number(banks[static_cast<std::size_t>(part)], "bank(s)");
}

Reading retired_of(const Gpu& gpu, unsigned int cause) {
  unsigned int count = 0;
  const Return status = gpu.call<decltype(nvmlDeviceGetRetiredPages)>(
      "nvmlDeviceGetRetiredPages", cause, &count, static_cast<unsigned long long*>(nullptr));
  if (status != kSuccess && status != kInsufficientSize) return Reading::failure(status);
  return number(count);
}

Reading sessions_of(const Gpu& gpu, const char* function, SessionPart part) {
  std::array<unsigned int, 3> found{};
  Return status = kSuccess;
  if (std::string_view(function) == "nvmlDeviceGetFBCStats") {
    FbcStats stats{};
    status = gpu.call<decltype(nvmlDeviceGetFBCStats)>(function, &stats);
    found = {stats.sessions, stats.average_fps, stats.average_latency};
  } else {
    status =
        gpu.call<decltype(nvmlDeviceGetEncoderStats)>(function, &found[0], &found[1], &found[2]);
  }
  if (status != kSuccess) return Reading::failure(status);
  return number(found[static_cast<std::size_t>(part)]);
}

Reading slowed_by(const Gpu& gpu, Slowed reason) {
  const auto told = reasons_of(gpu, "nvmlDeviceGetCurrentClocksEventReasons",
                               "nvmlDeviceGetCurrentClocksThrottleReasons");
  return reading_of(told, [&](unsigned long long reasons) {
    return active((reasons & static_cast<unsigned long long>(reason)) != 0);
  });
}

Reading slowed_reasons(const Gpu& gpu) {
  return reading_of(reasons_of(gpu, "nvmlDeviceGetCurrentClocksEventReasons",
                               "nvmlDeviceGetCurrentClocksThrottleReasons"),
                    [](unsigned long long reasons) {
                      return Reading{kSuccess, fmt::format("0x{:016x}", reasons)};
                    });
}

Reading supported_reasons(const Gpu& gpu) {
  return reading_of(reasons_of(gpu, "nvmlDeviceGetSupportedClocksEventReasons",
                               "nvmlDeviceGetSupportedClocksThrottleReasons"),
                    [](unsigned long long reasons) {
                      return Reading{kSuccess, fmt::format("0x{:016x}", reasons)};
                    });
}

Reading utilization_of(const Gpu& gpu, const char* function) {
  return reading_of(gpu.numbers(function), [](const auto& pair) { return percent(pair.first); });
}

Reading mode_of(const Gpu& gpu, const char* function, Pending pending) {
  return reading_of(gpu.numbers(function), [&](const auto& pair) {
    return enabled((pending == Pending::kPending ? pair.second : pair.first) != 0);
  });
}

Reading milliwatts_of(const Gpu& gpu, const char* function) {
  return reading_of(gpu.number(function), [](unsigned int mw) { return watts(mw); });
}

Reading power_field(const Gpu& gpu, unsigned int field) {
  return reading_of(gpu.field(field),
                    [](const FieldValue& v) { return watts(v.value.uint_value); });
}

Reading threshold_of(const Gpu& gpu, unsigned int threshold) {
  Told<unsigned int> told;
  told.status = gpu.call<decltype(nvmlDeviceGetTemperatureThreshold)>(
      "nvmlDeviceGetTemperatureThreshold", threshold, &told.value);
  return reading_of(told, [](unsigned int degrees) { return number(degrees, "C"); });
}

Reading degrees_of_field(const Gpu& gpu, unsigned int field) {
  return reading_of(gpu.field(field), [](const FieldValue& found) {
    return Reading{kSuccess, fmt::format("{}", found.value.int_value), "C"};
  });
}

Reading number_of_field(const Gpu& gpu, unsigned int field) {
  return reading_of(gpu.field(field), [](const FieldValue& found) {
    return number(found.value_type == kValueUllong ? found.value.ullong_value
                                                   : found.value.uint_value);
  });
}

Reading inforom_of(const Gpu& gpu, unsigned int object) {
  std::array<char, 64> version{};
  const Return status = gpu.call<decltype(nvmlDeviceGetInforomVersion)>(
      "nvmlDeviceGetInforomVersion", object, version.data(),
      static_cast<unsigned int>(version.size()));
  return {status, version.data()};
}

Reading throughput_of(const Gpu& gpu, unsigned int counter) {
  Told<unsigned int> told;
  told.status = gpu.call<decltype(nvmlDeviceGetPcieThroughput)>("nvmlDeviceGetPcieThroughput",
                                                                counter, &told.value);
  return reading_of(told, [](unsigned int kilobytes) { return number(kilobytes, "KB/s"); });
}

Reading index(const Gpu& gpu) {
  return number(gpu.index());
}

Reading fan_speed(const Gpu& gpu) {
  return reading_of(gpu.number("nvmlDeviceGetFanSpeed"), percent);
}

Reading bus_id(const Gpu& gpu) {
  return reading_of(gpu.pci(), [](const PciInfo& pci) { return Reading{kSuccess, pci.bus_id}; });
}

Reading brand(const Gpu& gpu) {
  static constexpr std::string_view kBrands[] = {
      "Unknown",    "Quadro",       "Tesla",      "NVS",         "GRID",       "GeForce",
      "Titan",      "NVIDIA vApps", "NVIDIA VPC", "NVIDIA VCS",  "NVIDIA VWS", "NVIDIA Gaming",
      "Quadro RTX", "NVIDIA RTX",   "NVIDIA",     "GeForce RTX", "Titan RTX"};
  return reading_of(gpu.number("nvmlDeviceGetBrand"),
                    [](unsigned int brand) { return word(kBrands, brand); });
}

Reading architecture(const Gpu& gpu) {
  static constexpr std::string_view kNames[] = {"Unknown",      "Unknown", "Kepler",   "Maxwell",
                                                "Pascal",       "Volta",   "Turing",   "Ampere",
                                                "Ada Lovelace", "Hopper",  "Blackwell"};
  return reading_of(gpu.architecture(), [](unsigned int place) { return word(kNames, place); });
}

Reading compute_capability(const Gpu& gpu) {
  int major = 0;
  int minor = 0;
  const Return status = gpu.call<decltype(nvmlDeviceGetCudaComputeCapability)>(
      "nvmlDeviceGetCudaComputeCapability", &major, &minor);
  return {status, fmt::format("{}.{}", major, minor)};
}

Reading compute_mode(const Gpu& gpu) {
  static constexpr std::string_view kModes[] = {"Default", "Exclusive_Thread", "Prohibited",
                                                "Exclusive_Process"};
  return reading_of(gpu.number("nvmlDeviceGetComputeMode"),
                    [](unsigned int mode) { return word(kModes, mode); });
}

Reading virtualization_mode(const Gpu& gpu) {
  static constexpr std::string_view kModes[] = {"None", "Pass-Through", "VGPU", "Host VGPU",
                                                "Host VSGA"};
  return reading_of(gpu.number("nvmlDeviceGetVirtualizationMode"),
                    [](unsigned int mode) { return word(kModes, mode); });
}

Reading performance_state(const Gpu& gpu) {
  return reading_of(gpu.number("nvmlDeviceGetPerformanceState"), [](unsigned int state) {
    return Reading{kSuccess, fmt::format("P{}", state)};
  });
}

Reading addressing_mode(const Gpu& gpu) {
  static constexpr std::string_view kModes[] = {"None", "HMM", "ATS"};
  return reading_of(versioned<AddressingMode>(gpu, "nvmlDeviceGetAddressingMode", 1),
                    [](const AddressingMode& found) { return word(kModes, found.value); });
}

Reading c2c_mode(const Gpu& gpu) {
  C2cModeInfo info{};
  const Return status =
      gpu.call<decltype(nvmlDeviceGetC2cModeInfoV)>("nvmlDeviceGetC2cModeInfoV", &info);
  return status == kSuccess ? enabled(info.is_enabled != 0) : Reading::failure(status);
}

Reading board_id(const Gpu& gpu) {
  return reading_of(gpu.number("nvmlDeviceGetBoardId"),
                    [](unsigned int id) { return Reading{kSuccess, fmt::format("0x{:x}", id)}; });
}

Reading gpu_utilization(const Gpu& gpu) {
  Utilization found{};
  const Return status =
      gpu.call<decltype(nvmlDeviceGetUtilizationRates)>("nvmlDeviceGetUtilizationRates", &found);
  return status == kSuccess ? percent(found.gpu) : Reading::failure(status);
}

Reading memory_utilization(const Gpu& gpu) {
  Utilization found{};
  const Return status =
      gpu.call<decltype(nvmlDeviceGetUtilizationRates)>("nvmlDeviceGetUtilizationRates", &found);
  return status == kSuccess ? percent(found.memory) : Reading::failure(status);
}

Reading temperature(const Gpu& gpu) {
  Told<unsigned int> told;
  told.status =
      gpu.call<decltype(nvmlDeviceGetTemperature)>("nvmlDeviceGetTemperature", 0U, &told.value);
  return reading_of(told, [](unsigned int degrees) { return number(degrees, "C"); });
}

Reading temperature_margin(const Gpu& gpu) {
  return reading_of(versioned<MarginTemperature>(gpu, "nvmlDeviceGetMarginTemperature", 1),
                    [](const MarginTemperature& found) {
                      return Reading{kSuccess, fmt::format("{}", found.margin), "C"};
                    });
}

Reading memory_temperature(const Gpu& gpu) {
  constexpr unsigned int kMemoryTemperature = 82;
  return degrees_of_field(gpu, kMemoryTemperature);
}

Reading min_power_limit(const Gpu& gpu) {
  return reading_of(limits_of(gpu), [](const auto& limits) { return watts(limits.first); });
}

Reading max_power_limit(const Gpu& gpu) {
  return reading_of(limits_of(gpu), [](const auto& limits) { return watts(limits.second); });
}

Reading recovery_action(const Gpu& gpu) {
  static constexpr std::string_view kActions[] = {"None", "Reset", "Reboot", "Drain P2P",
                                                  "Drain and Reset"};
  return reading_of(action_of(gpu), [](unsigned int action) { return word(kActions, action); });
}

Reading reset_required(const Gpu& gpu) {
  const auto told = action_of(gpu);
  return yes(told.status == kSuccess && told.value == kResetAction);
}

Reading drain_recommended(const Gpu& gpu) {
  return reading_of(action_of(gpu),
                    [](unsigned int action) { return yes(action == kDrainAndResetAction); });
}

Reading fabric_state(const Gpu& gpu) {
  static constexpr std::string_view kStates[] = {"N/A", "Not Started", "In Progress", "Completed"};
  return reading_of(fabric_of(gpu),
                    [](const GpuFabricInfoV2& info) { return word(kStates, info.state); });
}

Reading fabric_status(const Gpu& gpu) {
  return reading_of(fabric_of(gpu), [&](const GpuFabricInfoV2& info) {
    const auto status = static_cast<Return>(info.status);
    return Reading{kSuccess, status == kSuccess ? "Success" : gpu.nvml().words_for(status)};
  });
}

Reading fabric_clique(const Gpu& gpu) {
  return reading_of(fabric_of(gpu),
                    [](const GpuFabricInfoV2& info) { return number(info.clique_id); });
}

Reading fabric_cluster(const Gpu& gpu) {
  return reading_of(fabric_of(gpu), [](const GpuFabricInfoV2& info) {
    std::string text;
    for (std::size_t i = 0; i < std::size(info.cluster_uuid); ++i) {
      if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
      text += fmt::format("{:02x}", info.cluster_uuid[i]);
    }
    return Reading{kSuccess, text};
  });
}

Reading gsp_mode(const Gpu& gpu) {
  return mode_of(gpu, "nvmlDeviceGetGspFirmwareMode", Pending::kCurrent);
}

Reading gsp_default_mode(const Gpu& gpu) {
  return mode_of(gpu, "nvmlDeviceGetGspFirmwareMode", Pending::kPending);
}

}  // namespace gpu_emulator
