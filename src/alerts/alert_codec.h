#pragma once

#include <string>
#include <string_view>

#include "alerts/evaluator.h"
#include "alerts/silence.h"
#include "base/result.h"

// Alerts and silences as the bytes of notes (telemetry::Notes). Each begins with its version;
// fields are appended only.

namespace gpu_platform::alerts {

std::string encode(const Tracked& tracked);
std::string encode(const Silence& silence);
// kDataLoss: the bytes are none, or of a later version.
base::Result<Tracked> decode_tracked(std::string_view bytes);
base::Result<Silence> decode_silence(std::string_view bytes);

}  // namespace gpu_platform::alerts
