#pragma once

#include <string>
#include <vector>

#include "cli/text/json_view.h"
#include "gpu_platform/v1/use.pb.h"

namespace gpu_platform::cli {

// The document that `monitor` writes: monitoring_duration_seconds, sample_count and gpu_stats by a
// GPU's index, with utilization, memory_used_mb (MiB), memory_usage_percent, temperature_c and
// power_draw_w as the least, greatest and mean value. What was not read is null. GPUs of several
// nodes that have one index are named NODE:INDEX. Everything else is below `extra`.
Json monitor_json(const v1::AttemptUse& use);

// The name of each GPU in the document, in the order of the message.
std::vector<std::string> gpu_names(const v1::AttemptUse& use);

}  // namespace gpu_platform::cli
