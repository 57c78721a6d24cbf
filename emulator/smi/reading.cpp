#include "smi/reading.h"

#include <fmt/format.h>

namespace gpu_emulator {

namespace {

std::string_view reason_of(Return status) {
  switch (status) {
    case kNotSupported:
    case kFunctionNotFound:
    case kNotFound:
    case kArgumentVersionMismatch:
      return "N/A";
    case kGpuIsLost:
      return "GPU is lost";
    case kResetRequired:
      return "GPU requires reset";
    case kNoPermission:
      return "Insufficient Permissions";
    default:
      return "Unknown Error";
  }
}

}  // namespace

std::string in_words(const Reading& reading) {
  if (reading.status != kSuccess) return std::string(reason_of(reading.status));
  return reading.unit.empty() ? reading.value : fmt::format("{} {}", reading.value, reading.unit);
}

std::string in_csv(const Reading& reading, bool with_unit) {
  if (reading.status != kSuccess) return fmt::format("[{}]", reason_of(reading.status));
  return with_unit ? in_words(reading) : reading.value;
}

Reading number(std::uint64_t value, std::string_view unit) {
  return {kSuccess, fmt::format("{}", value), unit};
}

Reading mebibytes(std::uint64_t bytes) {
  return number(bytes >> 20, "MiB");
}

Reading percent(std::uint64_t value) {
  return number(value, "%");
}

Reading watts(std::uint64_t milliwatts) {
  return {kSuccess, fmt::format("{:.2f}", static_cast<double>(milliwatts) / 1000), "W"};
}

Reading enabled(bool is_enabled) {
  return {kSuccess, is_enabled ? "Enabled" : "Disabled"};
}

Reading yes(bool is_so) {
  return {kSuccess, is_so ? "Yes" : "No"};
}

Reading active(bool is_active) {
  return {kSuccess, is_active ? "Active" : "Not Active"};
}

}  // namespace gpu_emulator
