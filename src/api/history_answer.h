#pragma once

#include <span>
#include <string_view>

#include "api/history_question.h"
#include "base/result.h"
#include "gpu_platform/v1/telemetry.pb.h"
#include "telemetry/history.h"

// Answers a question about the history.

namespace gpu_platform::api {

// Asks the history once for each window and kind of thing. kNotFound: there is no such GPU now, and
// nothing was read of it in the window.
base::Result<v1::History> answer_of(const HistoryQuestion& question,
                                    const telemetry::History& history);

// How a metric is shown: a value times `scale` is in the unit of its name.
struct ShownMetric {
  double scale = 1;
  std::string_view unit;  // "watts"; empty: a number
};
ShownMetric shown(const telemetry::Metric& metric);

// Puts the points of a series and what they are together.
void put_values(const telemetry::Series& values, const telemetry::Metric& metric,
                std::span<const double> percentiles, v1::HistorySeries& out);

}  // namespace gpu_platform::api
