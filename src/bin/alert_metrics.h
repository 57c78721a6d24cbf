#pragma once

#include <span>

#include "alerts/alert.h"
#include "api/alert_source.h"
#include "api/metrics/page.h"

namespace gpu_platform::bin {

// Puts the counts of alerts, by state and severity, and how each channel does on the page of
// metrics. A count of 0 is there, too, so that rules have a series from the start.
void add_alert_metrics(std::span<const alerts::Alert> alerts,
                       std::span<const api::AlertChannelView> channels, api::MetricPage& page);

}  // namespace gpu_platform::bin
