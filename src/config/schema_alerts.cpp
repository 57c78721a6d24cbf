#include <array>

#include "config/schema_keys.h"

// The keys about what people are told of.

namespace gpu_platform::config {

namespace {

using C = Configuration;

// clang-format off
constexpr std::array kAlertKeys = {
    Key{"alerts.group_wait",
        +[](C& c) -> base::Duration& { return c.alert_group_wait; },
        0, 600, Effect::kAnytime,
        "How long a message waits for other news of its rack or node. "
        "Alertmanager is told at once."},
    Key{"alerts.group_interval",
        +[](C& c) -> base::Duration& { return c.alert_group_interval; },
        10, kDay, Effect::kAnytime,
        "The least time between two messages about one rack or node to a channel. "
        "That all of it is over is told without this wait."},
    Key{"alerts.template",
        +[](C& c) -> SiteFile& { return c.alert_template; },
        0, 0, Effect::kAnytime,
        "A file with the text of an alert in messages for people (Slack and mail). "
        "Places such as {{alert.summary}} stand for values; docs/alerts.md lists them."},
    Key{"alerts.url",
        +[](C& c) -> SiteName& { return c.alert_url; },
        0, 0, Effect::kAnytime,
        "The address of a page about the alerts, which messages to Alertmanager name."},
    Key{"alerts.max_waiting",
        +[](C& c) -> std::uint32_t& { return c.alert_max_waiting; },
        10, 1'000'000, Effect::kRestart,
        "The maximum number of messages that wait on disk for one channel. "
        "Beyond this the oldest are dropped and counted."},
    Key{"alerts.idle.below_percent",
        +[](C& c) -> std::uint32_t& { return c.idle.below_percent; },
        1, 100, Effect::kAnytime,
        "A job is idle if the mean utilization of its GPUs is below this. "
        "A job with unknown readings is never idle."},
    Key{"alerts.idle.after",
        +[](C& c) -> base::Duration& { return c.idle.after; },
        60, 7 * kDay, Effect::kAnytime,
        "The time over which the mean is taken."},
    Key{"alerts.idle.grace",
        +[](C& c) -> base::Duration& { return c.idle.grace; },
        0, 7 * kDay, Effect::kAnytime,
        "For so long after it has first used its GPUs a job is not idle."},
    Key{"alerts.idle.loading",
        +[](C& c) -> base::Duration& { return c.idle.loading; },
        0, 7 * kDay, Effect::kAnytime,
        "For so long after its start a job that has not used its GPUs yet is not idle."},
    Key{"alerts.idle.action",
        +[](C& c) -> IdleAction& { return c.idle.action; },
        0, 0, Effect::kAnytime,
        "What happens to an idle job. "
        "tell: an alert. "
        "warn: also a line in the output of the job. "
        "stop: also the job is stopped with the reason IDLE, alerts.idle.warn_before after that line."},
    Key{"alerts.idle.warn_before",
        +[](C& c) -> base::Duration& { return c.idle.warn_before; },
        60, kDay, Effect::kAnytime,
        "How long an idle job runs on after its warning until it is stopped. "
        "If it uses its GPUs meanwhile, it is not stopped."},
};
// clang-format on

}  // namespace

std::span<const Key> alert_keys() {
  return kAlertKeys;
}

}  // namespace gpu_platform::config
