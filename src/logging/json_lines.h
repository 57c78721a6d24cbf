#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <spdlog/formatter.h>

namespace gpu_platform::logging {

// Writes each message as one JSON object on a line of its own:
//   {"time":"2026-01-01T00:00:00.000Z","level":"info","message":"recovered","fields":{"jobs":"4"}}
// The pairs KEY=VALUE of a line of ours become `fields`, whose values are always strings; what
// stands around them is the message. Text of users is quoted or stands behind all pairs, so that it
// cannot make a field.
std::unique_ptr<spdlog::formatter> json_lines();

}  // namespace gpu_platform::logging
