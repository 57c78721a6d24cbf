#include "bin/alert_settings.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/suggest.h"
#include "model/job_selection.h"

namespace gpu_platform::bin {

namespace {

using outbound::ChannelKind;

constexpr std::array<ChannelKind, 5> kKinds = {ChannelKind::kSlack, ChannelKind::kWebhook,
                                               ChannelKind::kMail, ChannelKind::kAlertmanager,
                                               ChannelKind::kCommand};

bool is_channel_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, is_allowed);
}

bool is_absolute(const std::string& path) {
  return path.empty() || path.front() == '/';
}

// What is wrong with the address; empty: nothing.
std::string wrong_url(const std::string& url, bool is_mail) {
  const std::size_t end = url.find("://");
  const std::string scheme = url.substr(0, end == std::string::npos ? 0 : end);
  const bool is_known =
      is_mail ? scheme == "smtp" || scheme == "smtps" : scheme == "http" || scheme == "https";
  if (!is_known) {
    return fmt::format("the address must begin with {}",
                       is_mail ? "smtp:// or smtps://" : "https:// or http://");
  }
  const std::string rest = url.substr(end + 3);
  const std::string authority = rest.substr(0, rest.find_first_of("/?#"));
  // The message does not repeat the address: it may have a password.
  if (authority.find('@') != std::string::npos) {
    return "the address has a user or a password: put the password into secret_file";
  }
  if (authority.empty()) return "the address has no host";
  return {};
}

class ChannelReader {
 public:
  ChannelReader(const config::AlertChannel& words, std::string field)
      : words_(words), field_(std::move(field)) {}

  base::Result<outbound::Channel> read() const {
    if (!is_channel_name(words_.name)) {
      return wrong(fmt::format(
          "a channel is named by 1 to 64 letters, digits, '-' and '_', not '{}'", words_.name));
    }
    outbound::Channel channel;
    TRY_ASSIGN(channel.kind, kind());
    channel.name = words_.name;
    channel.url = words_.url;
    channel.url_file = words_.url_file;
    channel.secret_file = words_.secret_file;
    channel.user = words_.user;
    channel.from = words_.from;
    channel.to = words_.to;
    channel.ca_file = words_.ca_file;
    channel.proxy = words_.proxy;
    channel.allow_plain_text = words_.allow_plain_text;
    channel.command = words_.command;
    if (words_.timeout) channel.timeout = *words_.timeout;
    TRY(check(channel));
    return channel;
  }

 private:
  std::unexpected<base::Error> wrong(std::string message) const {
    return base::invalid(field_, std::move(message));
  }

  base::Result<ChannelKind> kind() const {
    std::vector<std::string_view> names;
    for (const ChannelKind kind : kKinds) {
      names.push_back(outbound::to_string(kind));
      if (names.back() == words_.kind) return kind;
    }
    return wrong(fmt::format("there is no kind '{}' of channels{}", words_.kind,
                             base::did_you_mean(words_.kind, names)));
  }

  base::Status check(const outbound::Channel& channel) const {
    if (!channel.proxy.empty()) TRY(check_proxy(channel));
    for (const std::string* const path :
         {&channel.url_file, &channel.secret_file, &channel.ca_file}) {
      if (!is_absolute(*path)) return wrong(fmt::format("'{}' is no absolute path", *path));
    }
    if (channel.timeout < base::seconds(1) || channel.timeout > base::minutes(5)) {
      return wrong("a timeout is 1s to 5m");
    }
    const bool is_mail = channel.kind == ChannelKind::kMail;
    if (!is_mail && !(channel.user.empty() && channel.from.empty() && channel.to.empty())) {
      return wrong("only a channel of kind 'mail' has user, from and to");
    }
    if (channel.kind == ChannelKind::kCommand) return check_command(channel);
    if (!channel.command.empty()) return wrong("only a channel of kind 'command' has a command");
    if (channel.url.empty() == channel.url_file.empty()) return wrong("give url or url_file");
    if (!channel.url.empty()) {
      if (std::string why = wrong_url(channel.url, is_mail); !why.empty()) {
        return wrong(std::move(why));
      }
    }
    if (is_mail && (channel.from.empty() || channel.to.empty())) {
      return wrong("a channel of kind 'mail' needs from and to");
    }
    if (is_mail) {
      const base::Status recipients = outbound::check_recipients(channel);
      if (!recipients) return wrong(fmt::format("to: {}", recipients.error().message));
    }
    return check_as_sent(channel);
  }

  // As each delivery does. Without libcurl an address is looked at only then.
  base::Status check_as_sent(const outbound::Channel& channel) const {
    const base::Status fine = outbound::check(channel);
    if (fine || fine.error().code != base::ErrorCode::kInvalidArgument) return {};
    return wrong(fmt::format("{}: {}", fine.error().field, fine.error().message));
  }

  base::Status check_proxy(const outbound::Channel& channel) const {
    if (channel.kind == ChannelKind::kMail || channel.kind == ChannelKind::kCommand) {
      return wrong(fmt::format("a channel of kind '{}' uses no proxy", words_.kind));
    }
    const std::string why = wrong_url(channel.proxy, false);
    return why.empty() ? base::Status() : wrong("proxy: " + why);
  }

  base::Status check_command(const outbound::Channel& channel) const {
    if (channel.command.empty() || channel.command.front().front() != '/') {
      return wrong("a channel of kind 'command' needs the absolute path of a program");
    }
    const bool has_more = !channel.url.empty() || !channel.url_file.empty() ||
                          !channel.secret_file.empty() || !channel.ca_file.empty();
    if (has_more)
      return wrong("a channel of kind 'command' has no url, url_file, secret_file and ca_file");
    return {};
  }

  const config::AlertChannel& words_;
  const std::string field_;
};

base::Result<std::vector<outbound::Channel>> channels_of(const config::Configuration& c) {
  std::vector<outbound::Channel> channels;
  for (std::size_t i = 0; i < c.alert_channels.size(); ++i) {
    const std::string field = fmt::format("alerts.channels[{}]", i);
    TRY_ASSIGN(outbound::Channel channel, ChannelReader(c.alert_channels[i], field).read());
    if (std::ranges::find(channels, channel.name, &outbound::Channel::name) != channels.end()) {
      return base::invalid(field, fmt::format("there are two channels '{}'", channel.name));
    }
    channels.push_back(std::move(channel));
  }
  return channels;
}

base::Status check_rules_of(const config::AlertRoute& route, const std::string& field,
                            const std::vector<alerts::Rule>& rules) {
  std::vector<std::string_view> names;
  for (const alerts::Rule& rule : rules) names.push_back(rule.name);
  for (const std::string& pattern : route.rules) {
    const bool is_known = std::ranges::any_of(
        names, [&](std::string_view name) { return model::matches_pattern(pattern, name); });
    if (is_known) continue;
    return base::invalid(
        field, fmt::format("there is no rule '{}'{}", pattern, base::did_you_mean(pattern, names)));
  }
  return {};
}

base::Result<std::vector<alerts::Route>> routes_of(const config::Configuration& c,
                                                   const std::vector<std::string>& channels,
                                                   const std::vector<alerts::Rule>& rules) {
  std::vector<alerts::Route> routes;
  for (std::size_t i = 0; i < c.alert_routes.size(); ++i) {
    const config::AlertRoute& words = c.alert_routes[i];
    const std::string field = fmt::format("alerts.routes[{}]", i);
    alerts::Route route{{}, words.team, words.rules, words.channels};
    if (!words.severity.empty()) {
      route.least = alerts::parse_severity(words.severity);
      if (!route.least) {
        return base::invalid(field, fmt::format("severity '{}' is not one of info, warning, "
                                                "critical",
                                                words.severity));
      }
    }
    TRY(check_rules_of(words, field, rules));
    if (words.channels.empty()) return base::invalid(field, "a route names at least one channel");
    for (const std::string& channel : words.channels) {
      if (std::ranges::find(channels, channel) != channels.end()) continue;
      return base::invalid(field, fmt::format("there is no channel '{}'", channel));
    }
    routes.push_back(std::move(route));
  }
  return routes;
}

alerts::Manner manner_of(const outbound::Channel& channel) {
  if (channel.kind == ChannelKind::kAlertmanager) return alerts::Manner::kAtOnce;
  return outbound::tells_owners(channel) ? alerts::Manner::kByOwner : alerts::Manner::kGrouped;
}

// The thresholds that files of other programs set, below those of alerts.rules.
std::vector<alerts::RuleWords> words_of(const config::Configuration& c) {
  std::vector<alerts::RuleWords> all;
  for (const config::AlertRule& rule : c.alert_rules) {
    all.push_back({rule.name, rule.signal, rule.above, rule.below, rule.clear, rule.hold,
                   rule.severity, rule.enabled, rule.advice, rule.types, rule.nodes, rule.teams});
  }
  const auto add = [&](std::string_view name, std::optional<std::uint32_t> above,
                       std::int64_t gap) {
    if (!above || std::ranges::find(all, name, &alerts::RuleWords::name) != all.end()) return;
    alerts::RuleWords words;
    words.name = name;
    words.above = *above;
    words.clear = std::int64_t{*above} - gap;
    words.is_enabled = true;
    all.push_back(std::move(words));
  };
  add("GpuHot", c.alert_temperature_c, 5);
  add("GpuBusy", c.alert_utilization_percent, 5);
  add("GpuMemoryNearFull", c.alert_memory_percent, 5);
  return all;
}

base::Result<std::optional<alerts::TextTemplate>> template_of(const std::string& path) {
  if (path.empty()) return std::nullopt;
  constexpr std::string_view kKey = "alerts.template";
  // Of a device or a FIFO there may be no end.
  std::error_code error;
  std::ifstream file;
  if (std::filesystem::is_regular_file(path, error)) file.open(path);
  if (!file.is_open()) {
    return base::invalid(std::string(kKey), fmt::format("{} cannot be read", path));
  }
  std::string text(alerts::TextTemplate::kMaxBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  auto parsed = alerts::TextTemplate::parse(text);
  if (!parsed) {
    return base::invalid(std::string(kKey), fmt::format("{}: {}", path, parsed.error().message));
  }
  return *std::move(parsed);
}

}  // namespace

telemetry::IdleRule idle_rule_of(const config::Configuration& configuration) {
  return {configuration.idle.below_percent, configuration.idle.after, configuration.idle.grace,
          configuration.idle.loading};
}

base::Result<AlertSettings> alert_settings_of(const config::Configuration& configuration) {
  AlertSettings settings;
  TRY_ASSIGN(settings.book.rules, alerts::make_rules(words_of(configuration)));
  TRY_ASSIGN(settings.channels, channels_of(configuration));
  for (const outbound::Channel& channel : settings.channels) {
    settings.book.channels.push_back(channel.name);
    settings.book.manners.emplace(channel.name, manner_of(channel));
  }
  std::ranges::sort(settings.book.channels);
  TRY_ASSIGN(settings.book.routes,
             routes_of(configuration, settings.book.channels, settings.book.rules));
  settings.book.limits.wait = configuration.alert_group_wait;
  settings.book.limits.interval = configuration.alert_group_interval;
  TRY_ASSIGN(settings.site.line, template_of(configuration.alert_template.path));
  settings.site.name = configuration.cluster_name.text;
  settings.site.url = configuration.alert_url.text;
  settings.idle = idle_rule_of(configuration);
  settings.idle_action = configuration.idle.action;
  settings.warn_before = configuration.idle.warn_before;
  return settings;
}

std::optional<config::Problem> problem_in_alerts(const config::Configuration& configuration) {
  const auto settings = alert_settings_of(configuration);
  if (settings) return std::nullopt;
  const std::string& field = settings.error().field;
  return config::problem_at(field, fmt::format("{}: {}", field, settings.error().message),
                            configuration);
}

}  // namespace gpu_platform::bin
