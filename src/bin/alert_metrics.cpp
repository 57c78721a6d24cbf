#include "bin/alert_metrics.h"

#include <map>
#include <utility>

#include "api/metrics/gpu_labels.h"

namespace gpu_platform::bin {

namespace {

using alerts::Severity;
using alerts::State;

void add_counts(std::span<const alerts::Alert> alerts, api::MetricPage& page) {
  std::map<std::pair<State, Severity>, std::size_t> counts;
  for (const State state : {State::kPending, State::kFiring, State::kResolved}) {
    for (const Severity severity : {Severity::kInfo, Severity::kWarning, Severity::kCritical}) {
      counts[{state, severity}] = 0;
    }
  }
  for (const alerts::Alert& alert : alerts) ++counts[{alert.state, alert.severity}];
  api::MetricFamily& family =
      page.gauge("gpu_platform_alerts", "Alerts by state and severity; resolved: lately.");
  for (const auto& [key, count] : counts) {
    family.add({{"state", api::label_of(key.first)}, {"severity", api::label_of(key.second)}},
               static_cast<double>(count));
  }
}

}  // namespace

void add_alert_metrics(std::span<const alerts::Alert> alerts,
                       std::span<const api::AlertChannelView> channels, api::MetricPage& page) {
  add_counts(alerts, page);
  api::MetricFamily& messages =
      page.counter("gpu_platform_alert_messages_total",
                   "Messages that left the queue of a channel, by how that ended.");
  api::MetricFamily& waiting =
      page.gauge("gpu_platform_alert_messages_waiting", "Messages in the queue of a channel.");
  api::MetricFamily& up = page.gauge("gpu_platform_alert_channel_up",
                                     "Whether the last try of a channel went (0 or 1).");
  for (const api::AlertChannelView& channel : channels) {
    const api::MetricLabels labels{{"channel", channel.name}};
    messages.add(labels.with("result", "sent"), static_cast<double>(channel.sent));
    messages.add(labels.with("result", "refused"), static_cast<double>(channel.refused));
    messages.add(labels.with("result", "dropped"), static_cast<double>(channel.dropped));
    waiting.add(labels, static_cast<double>(channel.waiting));
    up.add(labels, channel.problem.empty() ? 1 : 0);
  }
}

}  // namespace gpu_platform::bin
