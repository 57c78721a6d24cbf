#include "alerts/rendering.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/utc.h"
#include "base/utf8.h"

namespace gpu_platform::alerts {

namespace {

using Json = nlohmann::ordered_json;

// Labels may have any bytes; what is not UTF-8 is replaced.
std::string dumped(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json time_json(base::Instant at) {
  return at.is_set() ? Json(base::utc(at, base::Fraction::kMilliseconds)) : Json(nullptr);
}

Json json_of(const Alert& alert) {
  Json out = Json::object();
  out["id"] = alert.fingerprint;
  out["rule"] = alert.rule;
  out["severity"] = to_string(alert.severity);
  out["state"] = to_string(alert.state);
  out["summary"] = alert.summary;
  out["advice"] = alert.advice;
  out["value"] = alert.value ? Json(*alert.value) : Json(nullptr);
  out["labels"] = alert.labels;
  out["since"] = time_json(alert.since);
  out["fired_at"] = time_json(alert.fired);
  out["resolved_at"] = time_json(alert.resolved);
  return out;
}

std::string line_of(const Alert& alert, const Site& site) {
  return site.line ? site.line->of(alert, site.name) : usual_line(alert);
}

// Of a subject: no line breaks, and an end between two characters.
std::string one_line(std::string_view text, std::size_t max_bytes) {
  std::string out;
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t c = base::take_character(text);
    const std::string_view bytes = before.substr(0, before.size() - text.size());
    if (out.size() + bytes.size() > max_bytes) break;
    if (base::is_harmful(c)) {
      out += '?';
    } else {
      out += bytes;
    }
  }
  return out;
}

std::string for_slack(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::size_t all_of(const Notification& notification) {
  return notification.firing.size() + notification.resolved.size() + notification.more;
}

}  // namespace

std::string subject_of(const Notification& notification, const Site& site) {
  constexpr std::size_t kMaxBytes = 200;
  const bool is_over = notification.firing.empty();
  const std::size_t count = all_of(notification);
  std::string text = site.name.empty() ? std::string() : fmt::format("[{}] ", site.name);
  text += fmt::format("{} {} of {}", count, count == 1 ? "alert" : "alerts", notification.group);
  if (is_over) {
    text += ": resolved";
  } else {
    const Alert& worst = notification.firing.front();
    text += fmt::format(": {} {}", to_string(worst.severity), worst.rule);
  }
  return one_line(text, kMaxBytes);
}

std::string text_of(const Notification& notification, const Site& site) {
  std::string text = subject_of(notification, site) + "\n";
  for (const Alert& alert : notification.firing) text += line_of(alert, site) + "\n";
  for (const Alert& alert : notification.resolved) text += line_of(alert, site) + "\n";
  if (notification.more > 0) {
    text += fmt::format("and {} more: 'gpu-platform alerts list' shows them\n", notification.more);
  }
  return text;
}

std::string slack_json(const Notification& notification, const Site& site) {
  return dumped(Json{{"text", for_slack(text_of(notification, site))}});
}

std::string webhook_json(const Notification& notification, const Site& site) {
  Json out = Json::object();
  out["version"] = 1;
  out["key"] = notification.key;
  out["site"] = site.name;
  out["group"] = notification.group;
  out["firing"] = Json::array();
  for (const Alert& alert : notification.firing) out["firing"].push_back(json_of(alert));
  out["resolved"] = Json::array();
  for (const Alert& alert : notification.resolved) out["resolved"].push_back(json_of(alert));
  out["more"] = notification.more;
  return dumped(out);
}

std::string alertmanager_json(const Notification& notification, const Site& site,
                              base::Instant now) {
  Json out = Json::array();
  const auto add = [&](const Alert& alert) {
    Json each = Json::object();
    Json labels = Json::object();
    labels["alertname"] = alert.rule;
    labels["severity"] = [&] {
      constexpr std::array<std::string_view, 3> kNames = {"info", "warning", "critical"};
      return kNames.at(static_cast<std::size_t>(alert.severity));
    }();
    if (!site.name.empty()) labels["cluster"] = site.name;
    // Alertmanager refuses empty values.
    for (const auto& [name, value] : alert.labels) {
      if (!value.empty()) labels[name] = value;
    }
    each["labels"] = std::move(labels);
    each["annotations"] = {{"summary", alert.summary}, {"description", alert.advice}};
    each["startsAt"] = base::utc(alert.fired, base::Fraction::kMilliseconds);
    // Without an end Alertmanager would take it for over after its resolve_timeout, which a site
    // may have set to less than kRepeatEvery.
    const base::Instant end = alert.resolved.is_set() ? alert.resolved : now + kTrueFor;
    // It refuses an end before the start: the wall clock may have been set back.
    each["endsAt"] = base::utc(std::max(end, alert.fired), base::Fraction::kMilliseconds);
    if (!site.url.empty()) each["generatorURL"] = site.url;
    out.push_back(std::move(each));
  };
  for (const Alert& alert : notification.firing) add(alert);
  for (const Alert& alert : notification.resolved) add(alert);
  return dumped(out);
}

Notification test_notification(const std::string& channel, const std::string& by,
                               base::Instant now) {
  Alert alert;
  alert.rule = "Test";
  alert.severity = Severity::kInfo;
  alert.state = State::kFiring;
  alert.fingerprint = fmt::format("test-{}", now.unix_ns());
  alert.labels = {{"channel", channel}};
  alert.summary = fmt::format("this is a test of the channel {}, sent by {}", channel, by);
  alert.since = now;
  alert.fired = now;
  Notification notification;
  notification.channel = channel;
  notification.user = by;
  notification.group = "test";
  notification.key = alert.fingerprint;
  notification.firing.push_back(std::move(alert));
  return notification;
}

}  // namespace gpu_platform::alerts
