#include "api/alert_view.h"

#include <algorithm>
#include <string>

#include "api/convert/job.h"

namespace gpu_platform::api {

v1::AlertState to_proto(alerts::State state) {
  return static_cast<v1::AlertState>(static_cast<int>(state) + 1);
}

v1::AlertSeverity to_proto(alerts::Severity severity) {
  return static_cast<v1::AlertSeverity>(static_cast<int>(severity) + 1);
}

alerts::Severity to_model(v1::AlertSeverity severity) {
  return static_cast<alerts::Severity>(std::max(static_cast<int>(severity) - 1, 0));
}

void to_proto(const alerts::Alert& alert, v1::Alert& out) {
  out.set_id(alert.fingerprint);
  out.set_rule(alert.rule);
  out.set_severity(to_proto(alert.severity));
  out.set_state(to_proto(alert.state));
  for (const auto& [name, value] : alert.labels) (*out.mutable_labels())[name] = value;
  out.set_summary(alert.summary);
  out.set_advice(alert.advice);
  if (alert.value) out.set_value(*alert.value);
  if (alert.since.is_set()) to_proto(alert.since, *out.mutable_since());
  if (alert.fired.is_set()) to_proto(alert.fired, *out.mutable_fired_at());
  if (alert.resolved.is_set()) to_proto(alert.resolved, *out.mutable_resolved_at());
  if (!alert.acknowledged_by.empty()) {
    out.set_acknowledged_by(alert.acknowledged_by);
    out.set_acknowledge_comment(alert.acknowledge_comment);
  }
  if (alert.silence != 0) out.set_silence(std::to_string(alert.silence));
}

void to_proto(const alerts::Rule& rule, v1::AlertRule& out) {
  const alerts::SignalRow& signal = alerts::row_of(rule.signal);
  std::string_view unit = signal.unit;
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  out.set_name(rule.name);
  out.set_signal(std::string(signal.name));
  out.set_below(rule.is_below);
  out.set_threshold(rule.threshold);
  out.set_clear(rule.clear);
  out.set_unit(std::string(unit));
  out.set_for_seconds(static_cast<double>(base::whole_milliseconds(rule.hold)) / 1000);
  out.set_severity(to_proto(rule.severity));
  out.set_enabled(rule.is_enabled);
  out.set_advice(rule.advice);
  out.mutable_types()->Assign(rule.types.begin(), rule.types.end());
  out.mutable_nodes()->Assign(rule.nodes.begin(), rule.nodes.end());
  out.mutable_teams()->Assign(rule.teams.begin(), rule.teams.end());
  out.set_origin(rule.is_of_site ? "configuration" : "shipped");
}

void to_proto(const alerts::Silence& silence, v1::Silence& out) {
  out.set_id(std::to_string(silence.id));
  for (const auto& [name, value] : silence.matchers) (*out.mutable_matchers())[name] = value;
  to_proto(silence.from, *out.mutable_from());
  to_proto(silence.until, *out.mutable_until());
  out.set_made_by(silence.by);
  out.set_comment(silence.comment);
}

void to_proto(const AlertChannelView& channel, v1::AlertChannel& out) {
  out.set_name(channel.name);
  out.set_kind(channel.kind);
  out.set_waiting(channel.waiting);
  out.set_sent(channel.sent);
  out.set_refused(channel.refused);
  out.set_dropped(channel.dropped);
  if (channel.oldest) to_proto(*channel.oldest, *out.mutable_oldest());
  if (channel.last_sent) to_proto(*channel.last_sent, *out.mutable_last_sent());
  if (!channel.problem.empty()) out.set_problem(channel.problem);
}

}  // namespace gpu_platform::api
