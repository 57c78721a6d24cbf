#pragma once

#include <cstdint>

#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/use.pb.h"
#include "telemetry/use_summary.h"

// Messages about what jobs and commands did on their GPUs. The functions fill a cleared message.

namespace gpu_platform::api {

void to_proto(const telemetry::UseSummary& summary, std::uint32_t attempt, v1::AttemptUse& out);
void to_proto(const telemetry::UseTotals& totals, v1::WholeUse& out);
void to_proto(const telemetry::UseBrief& brief, v1::JobGpuUse& out);

}  // namespace gpu_platform::api
