#pragma once

#include <optional>
#include <span>

#include "api/call_meter.h"
#include "base/units.h"
#include "gpu_platform/v1/kpi.pb.h"
#include "telemetry/kpi.h"

// Key figures as messages. The functions fill what they name and leave the rest.

namespace gpu_platform::api {

// All that follows from the figures and the capacity. `seconds`: the length of the window, as far
// as there are records of it. `available_hours`: of GPUs; none: not known.
void put_figures(const telemetry::KpiFigures& figures, double seconds,
                 std::optional<double> available_hours, v1::Kpi& out);

void to_proto(const telemetry::KpiGpuTime& time, v1::KpiGpuTime& out);

// The times of all calls together, but for those that wait for something. Nothing is put where
// there are none.
void put_responses(std::span<const CallMeter::Row> rows, base::Instant since, v1::Kpi& out);

}  // namespace gpu_platform::api
