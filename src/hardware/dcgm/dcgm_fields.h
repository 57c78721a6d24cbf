#pragma once

#include <cstdint>
#include <span>

#include "hardware/dcgm/dcgm_abi.h"
#include "model/gpu_metrics.h"

// Which fields of DCGM are which metrics of a GPU. Pure.

namespace gpu_platform::hardware {

// Fields that DCGM reads from the driver as NVML does.
std::span<const std::uint16_t> dcgm_device_fields();
// Fields that take the GPU's counters; the first kDcgmPlainActivities can be counted together on
// every GPU, the others not on all.
std::span<const std::uint16_t> dcgm_activity_fields();
inline constexpr std::size_t kDcgmPlainActivities = 5;

// Writes the value into its metric. One that DCGM does not have, of another type, or out of what
// the metric can be, changes nothing.
void take_dcgm_value(const DcgmFieldValue& value, model::GpuMetrics& out);

// Copies into `reading` the metrics that it lacks and `more` has. Slow metrics are added only where
// slow ones were read, so that they do not look read where they are not.
void fill_gaps(const model::GpuMetrics& more, model::GpuMetrics& reading);

}  // namespace gpu_platform::hardware
