#pragma once

#include <cstdint>
#include <span>

#include "config/schema.h"

// The parts of schema(), one for each file, in the order of the reference page.

namespace gpu_platform::config {

std::span<const Key> queue_keys();
std::span<const Key> execution_keys();
std::span<const Key> telemetry_keys();
std::span<const Key> alert_keys();
std::span<const Key> accounting_keys();
std::span<const Key> api_keys();

// Units of bounds: bytes, and seconds.
inline constexpr std::int64_t kKi = 1024;
inline constexpr std::int64_t kDay = 86'400;

}  // namespace gpu_platform::config
