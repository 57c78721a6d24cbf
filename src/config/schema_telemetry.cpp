#include <array>

#include "config/schema_keys.h"

// The keys about what is read of GPUs and hosts, and how long it is kept.

namespace gpu_platform::config {

namespace {

using C = Configuration;

// clang-format off
constexpr std::array kTelemetryKeys = {
    Key{"telemetry.history",
        +[](C& c) -> bool& { return c.telemetry.history; },
        0, 0, Effect::kRestart,
        "Whether readings of GPUs, hosts and jobs are kept. "
        "They are in history.db in the data directory, which can be removed while the daemon is stopped."},
    Key{"telemetry.max_bytes",
        +[](C& c) -> base::Bytes& { return c.telemetry.max_bytes; },
        16 * kKi * kKi, kKi * kKi * kKi * kKi, Effect::kRestart,
        "The maximum size of the history. "
        "If it is reached, the oldest samples are removed first, then the oldest minutes. "
        "The daemon logs at its start how far back this reaches."},
    Key{"telemetry.keep_samples",
        +[](C& c) -> base::Duration& { return c.telemetry.keep_samples; },
        3'600, 366 * kDay, Effect::kRestart,
        "How long each sample is kept."},
    Key{"telemetry.keep_minutes",
        +[](C& c) -> base::Duration& { return c.telemetry.keep_minutes; },
        kDay, 3'660 * kDay, Effect::kRestart,
        "How long the least, mean and greatest value of each minute are kept."},
    Key{"telemetry.keep_quarters",
        +[](C& c) -> base::Duration& { return c.telemetry.keep_quarters; },
        kDay, 3'660 * kDay, Effect::kRestart,
        "How long those of each quarter of an hour are kept."},
};
// clang-format on

}  // namespace

std::span<const Key> telemetry_keys() {
  return kTelemetryKeys;
}

}  // namespace gpu_platform::config
