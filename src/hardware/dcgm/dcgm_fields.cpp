#include "hardware/dcgm/dcgm_fields.h"

#include <array>
#include <cmath>
#include <optional>

namespace gpu_platform::hardware {
namespace {

using model::GpuMetrics;

constexpr std::array kDeviceFields = {kDcgmFieldMemoryTemperature, kDcgmFieldEnergy};

struct Activity {
  std::uint16_t field;
  std::optional<std::uint32_t> GpuMetrics::* member;
};
constexpr std::array kActivities = {
    Activity{kDcgmFieldGraphicsActive, &GpuMetrics::graphics_active},
    Activity{kDcgmFieldSmActive, &GpuMetrics::sm_active},
    Activity{kDcgmFieldSmOccupancy, &GpuMetrics::sm_occupancy},
    Activity{kDcgmFieldTensorActive, &GpuMetrics::tensor_active},
    Activity{kDcgmFieldDramActive, &GpuMetrics::dram_active},
    Activity{kDcgmFieldFp64Active, &GpuMetrics::fp64_active},
    Activity{kDcgmFieldFp32Active, &GpuMetrics::fp32_active},
    Activity{kDcgmFieldFp16Active, &GpuMetrics::fp16_active}};
static_assert(kDcgmPlainActivities <= kActivities.size());

constexpr std::array kActivityFields = [] {
  std::array<std::uint16_t, kActivities.size()> fields{};
  for (std::size_t i = 0; i < fields.size(); ++i) fields[i] = kActivities[i].field;
  return fields;
}();

std::optional<std::int64_t> number_of(const DcgmFieldValue& value) {
  const bool is_there = value.type == kDcgmNumber && value.value.number < kDcgmBlankNumber;
  return is_there ? std::optional(value.value.number) : std::nullopt;
}

// In thousandths. What DCGM does not have is far above 1.
std::optional<std::uint32_t> share_of(const DcgmFieldValue& value) {
  if (value.type != kDcgmReal || !std::isfinite(value.value.real)) return std::nullopt;
  const double thousandths = std::round(value.value.real * 1000);
  if (thousandths < 0 || thousandths > 1000) return std::nullopt;
  return static_cast<std::uint32_t>(thousandths);
}

template <class Value>
void take_missing(const std::optional<Value>& from, std::optional<Value>& into) {
  if (!into) into = from;
}

}  // namespace

std::span<const std::uint16_t> dcgm_device_fields() {
  return kDeviceFields;
}

std::span<const std::uint16_t> dcgm_activity_fields() {
  return kActivityFields;
}

void take_dcgm_value(const DcgmFieldValue& value, GpuMetrics& out) {
  if (value.status != kDcgmOk) return;
  if (value.field == kDcgmFieldMemoryTemperature) {
    // Drivers say 0 where the memory has no sensor.
    constexpr std::int64_t kMaxC = 200;
    const auto degrees = number_of(value);
    if (degrees && *degrees > 0 && *degrees <= kMaxC) {
      out.memory_temperature_c = static_cast<std::int32_t>(*degrees);
    }
    return;
  }
  if (value.field == kDcgmFieldEnergy) {
    const auto millijoules = number_of(value);
    if (!millijoules || *millijoules < 0) return;
    if (!out.slow) out.slow.emplace();
    out.slow->energy_mj = static_cast<std::uint64_t>(*millijoules);
    return;
  }
  const auto share = share_of(value);
  for (const Activity& activity : kActivities) {
    if (share && activity.field == value.field) out.*activity.member = share;
  }
}

void fill_gaps(const GpuMetrics& more, GpuMetrics& reading) {
  take_missing(more.memory_temperature_c, reading.memory_temperature_c);
  for (const Activity& activity : kActivities) {
    take_missing(more.*activity.member, reading.*activity.member);
  }
  if (more.slow && reading.slow) take_missing(more.slow->energy_mj, reading.slow->energy_mj);
}

}  // namespace gpu_platform::hardware
