#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "nvml/nvml_abi.h"

namespace gpu_emulator {

// One value that a driver told, or why it did not.
struct Reading {
  Return status = kSuccess;
  std::string value;
  std::string_view unit = {};  // "MiB"; a literal

  static Reading failure(Return status) { return {status, {}}; }
  static Reading none() { return {kNotSupported, {}}; }
};

// In the reports: "81559 MiB", "N/A", "GPU is lost".
std::string in_words(const Reading& reading);
// In comma-separated values, where a missing value is "[N/A]". The unit goes with the value only if
// `with_unit`.
std::string in_csv(const Reading& reading, bool with_unit);

Reading number(std::uint64_t value, std::string_view unit = {});
// In MiB, rounded down, as the original has it.
Reading mebibytes(std::uint64_t bytes);
// "0 %"
Reading percent(std::uint64_t value);
// "71.35 W" of milliwatts
Reading watts(std::uint64_t milliwatts);
Reading enabled(bool is_enabled);  // "Enabled", "Disabled"
Reading yes(bool is_so);           // "Yes", "No"
Reading active(bool is_active);    // "Active", "Not Active"

}  // namespace gpu_emulator
