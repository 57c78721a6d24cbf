#include "config/yaml/alerts.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::config {

namespace {

constexpr std::size_t kLongestText = 4096;
constexpr std::array<std::string_view, 12> kRuleKeys = {"name",   "signal", "above",    "below",
                                                        "clear",  "for",    "severity", "enabled",
                                                        "advice", "types",  "nodes",    "teams"};
constexpr std::array<std::string_view, 4> kRouteKeys = {"severity", "team", "rules", "channels"};
constexpr std::array<std::string_view, 13> kChannelKeys = {
    "name", "kind",    "url",   "url_file",         "secret_file", "user",   "from",
    "to",   "ca_file", "proxy", "allow_plain_text", "command",     "timeout"};

}  // namespace

bool AlertsReader::reads(std::string_view path) {
  return path == "alerts.rules" || path == "alerts.routes" || path == "alerts.channels";
}

std::optional<std::string> AlertsReader::text(const YAML::Node& node, std::string_view what) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20; };
  if (node.IsScalar() && !node.Scalar().empty() && node.Scalar().size() <= kLongestText &&
      std::ranges::none_of(node.Scalar(), is_control)) {
    return node.Scalar();
  }
  report(node, fmt::format("'{}' in '{}' must be a text of one line", what, key_));
  return std::nullopt;
}

std::vector<std::string> AlertsReader::texts(const YAML::Node& list, std::string_view what) {
  std::vector<std::string> all;
  if (list.IsScalar()) {
    if (auto one = text(list, what)) all.push_back(*std::move(one));
    return all;
  }
  if (!list.IsSequence()) {
    report(list, fmt::format("'{}' in '{}' must be a list, not {}", what, key_, kind_of(list)));
    return all;
  }
  for (const auto& each : list) {
    if (auto one = text(each, what)) all.push_back(*std::move(one));
  }
  return all;
}

std::optional<bool> AlertsReader::truth(const YAML::Node& node, std::string_view what) {
  if (node.IsScalar() && node.Scalar() == "true") return true;
  if (node.IsScalar() && node.Scalar() == "false") return false;
  report(node, fmt::format("'{}' in '{}' must be true or false", what, key_));
  return std::nullopt;
}

void AlertsReader::note_place(const YAML::Node& map, std::size_t index) {
  const YAML::Mark mark = map.Mark();
  places_.push_back(
      {fmt::format("{}[{}]", key_, index), file_, mark.line + 1, mark.column + 1, {}});
}

void AlertsReader::read_rule(const YAML::Node& map) {
  AlertRule rule;
  for_each_entry(map, [&](const YAML::Node& name, const YAML::Node& value) {
    const std::string& key = name.Scalar();
    if (key == "name") {
      rule.name = text(value, key).value_or("");
    } else if (key == "signal") {
      rule.signal = text(value, key).value_or("");
    } else if (key == "above") {
      rule.above = count(value, key, 0);
    } else if (key == "below") {
      rule.below = count(value, key, 0);
    } else if (key == "clear") {
      rule.clear = count(value, key, 0);
    } else if (key == "for") {
      rule.hold = duration(value, key);
    } else if (key == "severity") {
      rule.severity = text(value, key).value_or("");
    } else if (key == "enabled") {
      rule.enabled = truth(value, key);
    } else if (key == "advice") {
      rule.advice = text(value, key).value_or("");
    } else if (key == "types") {
      rule.types = texts(value, key);
    } else if (key == "nodes") {
      rule.nodes = texts(value, key);
    } else if (key == "teams") {
      rule.teams = texts(value, key);
    } else {
      report_unknown(name, kRuleKeys);
    }
  });
  if (!map["name"]) report(map, fmt::format("an entry of '{}' needs a name", key_));
  note_place(map, rules_.size());
  rules_.push_back(std::move(rule));
}

void AlertsReader::read_route(const YAML::Node& map) {
  AlertRoute route;
  for_each_entry(map, [&](const YAML::Node& name, const YAML::Node& value) {
    const std::string& key = name.Scalar();
    if (key == "severity") {
      route.severity = text(value, key).value_or("");
    } else if (key == "team") {
      route.team = text(value, key).value_or("");
    } else if (key == "rules") {
      route.rules = texts(value, key);
    } else if (key == "channels") {
      route.channels = texts(value, key);
    } else {
      report_unknown(name, kRouteKeys);
    }
  });
  if (!map["channels"]) report(map, fmt::format("an entry of '{}' needs channels", key_));
  note_place(map, routes_.size());
  routes_.push_back(std::move(route));
}

void AlertsReader::read_channel(const YAML::Node& map) {
  AlertChannel channel;
  for_each_entry(map, [&](const YAML::Node& name, const YAML::Node& value) {
    const std::string& key = name.Scalar();
    const std::pair<std::string_view, std::string*> plain[] = {
        {"name", &channel.name},
        {"kind", &channel.kind},
        {"url", &channel.url},
        {"url_file", &channel.url_file},
        {"secret_file", &channel.secret_file},
        {"user", &channel.user},
        {"from", &channel.from},
        {"ca_file", &channel.ca_file},
        {"proxy", &channel.proxy}};
    const auto* const field =
        std::ranges::find(plain, key, &std::pair<std::string_view, std::string*>::first);
    if (field != std::end(plain)) {
      *field->second = text(value, key).value_or("");
    } else if (key == "to") {
      channel.to = texts(value, key);
    } else if (key == "command") {
      channel.command = texts(value, key);
    } else if (key == "allow_plain_text") {
      channel.allow_plain_text = truth(value, key).value_or(false);
    } else if (key == "timeout") {
      channel.timeout = duration(value, key);
    } else {
      report_unknown(name, kChannelKeys);
    }
  });
  for (const char* const needed : {"name", "kind"}) {
    if (!map[needed]) report(map, fmt::format("an entry of '{}' needs a {}", key_, needed));
  }
  note_place(map, channels_.size());
  channels_.push_back(std::move(channel));
}

void AlertsReader::read(const std::string& path, const YAML::Node& list) {
  key_ = path;
  if (list.IsNull()) return;
  if (!list.IsSequence()) {
    return report(list, fmt::format("'{}' must be a list, not {}", key_, kind_of(list)));
  }
  for (const auto& map : list) {
    if (!map.IsMap()) {
      report(map, fmt::format("an entry of '{}' must be names with their values, not {}", key_,
                              kind_of(map)));
    } else if (path == "alerts.rules") {
      read_rule(map);
    } else if (path == "alerts.routes") {
      read_route(map);
    } else {
      read_channel(map);
    }
  }
}

void AlertsReader::finish(Configuration& configuration) {
  configuration.alert_rules = std::move(rules_);
  configuration.alert_routes = std::move(routes_);
  configuration.alert_channels = std::move(channels_);
  std::ranges::move(places_, std::back_inserter(configuration.places));
}

}  // namespace gpu_platform::config
