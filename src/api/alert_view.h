#pragma once

#include "api/alert_source.h"
#include "gpu_platform/v1/alerts.pb.h"

// Alerts, rules, silences and channels as messages.

namespace gpu_platform::api {

void to_proto(const alerts::Alert& alert, v1::Alert& out);
void to_proto(const alerts::Rule& rule, v1::AlertRule& out);
void to_proto(const alerts::Silence& silence, v1::Silence& out);
void to_proto(const AlertChannelView& channel, v1::AlertChannel& out);

v1::AlertState to_proto(alerts::State state);
v1::AlertSeverity to_proto(alerts::Severity severity);
// UNSPECIFIED is the least one.
alerts::Severity to_model(v1::AlertSeverity severity);

}  // namespace gpu_platform::api
