#pragma once

#include <cstdint>

#include "smi/gpu.h"

// The readings that the reports and the queries share. What is a template is told apart by a
// constant, so that rows of tables can name one reading each.

namespace gpu_emulator {

// The name of a function of NVML as a constant.
template <unsigned kSize>
struct FunctionName {
  char text[kSize];
  consteval FunctionName(const char (&name)[kSize]) {
    for (unsigned i = 0; i < kSize; ++i) text[i] = name[i];
  }
};

enum class Pending : bool { kCurrent, kPending };
enum class MemoryPart : std::uint8_t { kTotal, kReserved, kUsed, kFree };
enum class Clock : std::uint8_t { kGraphics, kSm, kMemory, kVideo };             // nvmlClockType_t
enum class ClockOf : std::uint8_t { kNow, kApplications, kDefault, kMaxBoost };  // nvmlClockId_t
enum class PciPart : std::uint8_t { kDomain, kBus, kDevice, kDeviceId, kSubsystemId };
enum class EccKind : std::uint8_t { kCorrected, kUncorrected };
enum class EccTime : std::uint8_t { kVolatile, kAggregate };
enum class EccPlace : std::uint8_t {  // nvmlMemoryLocation_t, and the sum of all
  kL1,
  kL2,
  kDram,
  kRegisters,
  kTexture,
  kTextureShared,
  kCbu,
  kSram,
  kTotal,
};
enum class RemappedPart : std::uint8_t { kCorrected, kUncorrected, kPending, kFailure };
enum class HistogramPart : std::uint8_t { kMax, kHigh, kPartial, kLow, kNone };
enum class SessionPart : std::uint8_t { kSessions, kFps, kLatency };
// Reasons for slower clocks: nvmlClocksEventReason…
enum class Slowed : std::uint16_t {
  kIdle = 0x1,
  kApplications = 0x2,
  kPowerCap = 0x4,
  kHardware = 0x8,
  kSyncBoost = 0x10,
  kSoftwareThermal = 0x20,
  kHardwareThermal = 0x40,
  kPowerBrake = 0x80,
  kDisplay = 0x100,
};

Reading memory_of(const Gpu& gpu, MemoryPart part);
Reading bar1_of(const Gpu& gpu, MemoryPart part);
Reading clock_of(const Gpu& gpu, Clock clock, ClockOf which);
Reading max_clock_of(const Gpu& gpu, Clock clock);
Reading pci_of(const Gpu& gpu, PciPart part);
Reading ecc_of(const Gpu& gpu, EccKind kind, EccTime time, EccPlace place);
// By the place in nvmlEccSramErrorStatus_v1_t; 11: whether the threshold is exceeded.
Reading sram_of(const Gpu& gpu, unsigned int place);
Reading remapped_of(const Gpu& gpu, RemappedPart part);
Reading histogram_of(const Gpu& gpu, HistogramPart part);
Reading retired_of(const Gpu& gpu, unsigned int cause);
Reading sessions_of(const Gpu& gpu, const char* function, SessionPart part);
Reading slowed_by(const Gpu& gpu, Slowed reason);
Reading utilization_of(const Gpu& gpu, const char* function);
Reading mode_of(const Gpu& gpu, const char* function, Pending pending);
Reading milliwatts_of(const Gpu& gpu, const char* function);
Reading power_field(const Gpu& gpu, unsigned int field);
Reading threshold_of(const Gpu& gpu, unsigned int threshold);
Reading degrees_of_field(const Gpu& gpu, unsigned int field);
Reading number_of_field(const Gpu& gpu, unsigned int field);
Reading inforom_of(const Gpu& gpu, unsigned int object);
Reading throughput_of(const Gpu& gpu, unsigned int counter);

template <FunctionName kName>
Reading text(const Gpu& gpu) {
  return gpu.text(kName.text);
}
template <FunctionName kName>
Reading plain_number(const Gpu& gpu) {
  const auto told = gpu.number(kName.text);
  return told.status == kSuccess ? number(told.value) : Reading::failure(told.status);
}
// Numbers that are 1 for "Enabled" or "Yes".
template <FunctionName kName>
Reading enabled_mode(const Gpu& gpu) {
  const auto told = gpu.number(kName.text);
  return told.status == kSuccess ? enabled(told.value != 0) : Reading::failure(told.status);
}
template <FunctionName kName>
Reading yes_or_no(const Gpu& gpu) {
  const auto told = gpu.number(kName.text);
  return told.status == kSuccess ? yes(told.value != 0) : Reading::failure(told.status);
}
template <FunctionName kName, Pending kPending>
Reading mode(const Gpu& gpu) {
  return mode_of(gpu, kName.text, kPending);
}
template <FunctionName kName>
Reading utilization(const Gpu& gpu) {
  return utilization_of(gpu, kName.text);
}
template <FunctionName kName>
Reading power(const Gpu& gpu) {
  return milliwatts_of(gpu, kName.text);
}
template <FunctionName kName, SessionPart kPart>
Reading sessions(const Gpu& gpu) {
  return sessions_of(gpu, kName.text, kPart);
}
template <FunctionName kName>
Reading lanes(const Gpu& gpu) {  // "16x"
  Reading reading = plain_number<kName>(gpu);
  if (reading.status == kSuccess) reading.value += "x";
  return reading;
}
template <MemoryPart kPart>
Reading memory(const Gpu& gpu) {
  return memory_of(gpu, kPart);
}
template <MemoryPart kPart>
Reading bar1(const Gpu& gpu) {
  return bar1_of(gpu, kPart);
}
template <Clock kClock, ClockOf kWhich>
Reading clock(const Gpu& gpu) {
  return clock_of(gpu, kClock, kWhich);
}
template <Clock kClock>
Reading max_clock(const Gpu& gpu) {
  return max_clock_of(gpu, kClock);
}
template <PciPart kPart>
Reading pci(const Gpu& gpu) {
  return pci_of(gpu, kPart);
}
template <EccKind kKind, EccTime kTime, EccPlace kPlace>
Reading ecc(const Gpu& gpu) {
  return ecc_of(gpu, kKind, kTime, kPlace);
}
template <unsigned kPlace>
Reading sram(const Gpu& gpu) {
  return sram_of(gpu, kPlace);
}
template <RemappedPart kPart>
Reading remapped(const Gpu& gpu) {
  return remapped_of(gpu, kPart);
}
template <HistogramPart kPart>
Reading histogram(const Gpu& gpu) {
  return histogram_of(gpu, kPart);
}
template <unsigned kCause>
Reading retired(const Gpu& gpu) {
  return retired_of(gpu, kCause);
}
template <Slowed kReason>
Reading slowed(const Gpu& gpu) {
  return slowed_by(gpu, kReason);
}
template <unsigned kField>
Reading field_watts(const Gpu& gpu) {
  return power_field(gpu, kField);
}
template <unsigned kThreshold>
Reading threshold(const Gpu& gpu) {
  return threshold_of(gpu, kThreshold);
}
template <unsigned kField>
Reading field_degrees(const Gpu& gpu) {
  return degrees_of_field(gpu, kField);
}
template <unsigned kField>
Reading field_number(const Gpu& gpu) {
  return number_of_field(gpu, kField);
}
template <unsigned kObject>
Reading inforom(const Gpu& gpu) {
  return inforom_of(gpu, kObject);
}
template <unsigned kCounter>
Reading throughput(const Gpu& gpu) {
  return throughput_of(gpu, kCounter);
}

inline Reading not_told(const Gpu&) {
  return Reading::none();
}
Reading index(const Gpu& gpu);
Reading fan_speed(const Gpu& gpu);
Reading bus_id(const Gpu& gpu);
Reading brand(const Gpu& gpu);
Reading architecture(const Gpu& gpu);
Reading compute_capability(const Gpu& gpu);
Reading compute_mode(const Gpu& gpu);
Reading virtualization_mode(const Gpu& gpu);
Reading performance_state(const Gpu& gpu);
Reading addressing_mode(const Gpu& gpu);
Reading c2c_mode(const Gpu& gpu);
Reading board_id(const Gpu& gpu);
Reading slowed_reasons(const Gpu& gpu);  // "0x0000000000000001"
Reading supported_reasons(const Gpu& gpu);
Reading gpu_utilization(const Gpu& gpu);
Reading memory_utilization(const Gpu& gpu);
Reading temperature(const Gpu& gpu);
Reading temperature_margin(const Gpu& gpu);
Reading memory_temperature(const Gpu& gpu);
Reading min_power_limit(const Gpu& gpu);
Reading max_power_limit(const Gpu& gpu);
Reading recovery_action(const Gpu& gpu);
Reading reset_required(const Gpu& gpu);
Reading drain_recommended(const Gpu& gpu);
Reading fabric_state(const Gpu& gpu);
Reading fabric_status(const Gpu& gpu);
Reading fabric_clique(const Gpu& gpu);
Reading fabric_cluster(const Gpu& gpu);
Reading gsp_mode(const Gpu& gpu);
Reading gsp_default_mode(const Gpu& gpu);

}  // namespace gpu_emulator
