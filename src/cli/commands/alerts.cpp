#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/letters.h"
#include "base/parse.h"
#include "base/percent.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/text/local_clock.h"
#include "cli/text/message_text.h"
#include "cli/text/text.h"
#include "cli/words/input.h"
#include "cli/words/list_command.h"
#include "client/answer.h"
#include "client/request_text.h"
#include "gpu_platform/v1/alerts.pb.h"

// Alerts, silences, rules and channels.

namespace gpu_platform::cli {

namespace {

constexpr PagedList kAlerts{"/v1/alerts", "alerts", 10'000};
constexpr PagedList kSilences{"/v1/silences", "silences", 10'000};
constexpr PagedList kRules{"/v1/alert_rules", "rules", 10'000};
constexpr PagedList kChannels{"/v1/alert_channels", "channels", 10'000};

using Kind = ListFilter::Kind;

std::string severity_of(const v1::Alert& alert) {
  return base::to_lower(name_at(alert, v1::Alert::kSeverityFieldNumber));
}

// "firing", "firing, silenced", "firing, ann looks after it".
std::string state_of(const v1::Alert& alert) {
  std::string state = base::to_lower(name_at(alert, v1::Alert::kStateFieldNumber));
  if (alert.has_silence()) state += ", silenced";
  if (alert.has_acknowledged_by()) state += ", seen by " + alert.acknowledged_by();
  return state;
}

std::string labels_of(const v1::Alert& alert) {
  std::map<std::string, std::string> sorted(alert.labels().begin(), alert.labels().end());
  std::string text;
  for (const auto& [name, value] : sorted) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

std::string matchers_of(const v1::Silence& silence) {
  std::map<std::string, std::string> sorted(silence.matchers().begin(), silence.matchers().end());
  std::string text;
  for (const auto& [name, value] : sorted) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

template <std::size_t Rows>
std::string page_of(const std::array<std::pair<std::string_view, std::string>, Rows>& rows) {
  std::string page;
  for (const auto& [name, value] : rows) {
    if (!value.empty()) page += fmt::format("{:<14}{}\n", name, harmless(value));
  }
  return page;
}

std::string page_of(const v1::Alert& alert) {
  std::string acknowledged = alert.acknowledged_by();
  if (!alert.acknowledge_comment().empty()) acknowledged += ": " + alert.acknowledge_comment();
  return page_of(std::array<std::pair<std::string_view, std::string>, 11>{{
      {"Alert", alert.id()},
      {"Rule", alert.rule()},
      {"Severity", severity_of(alert)},
      {"State", base::to_lower(name_at(alert, v1::Alert::kStateFieldNumber))},
      {"Summary", alert.summary()},
      {"What helps", alert.advice()},
      {"About", labels_of(alert)},
      {"Since", time_text(alert.since())},
      {"Resolved", time_text(alert.resolved_at())},
      {"Seen by", acknowledged},
      {"Silence", alert.silence()},
  }});
}

std::string page_of(const v1::Silence& silence) {
  return page_of(std::array<std::pair<std::string_view, std::string>, 5>{{
      {"Silence", silence.id()},
      {"About", matchers_of(silence)},
      {"Until", time_text(silence.until())},
      {"Made by", silence.made_by()},
      {"Comment", silence.comment()},
  }});
}

// Prints one message, or what went wrong.
template <class Message>
int show_one(Console& console, const Called<std::string>& answer, const Output& output) {
  if (!answer) return report(console, answer.error(), output.wants_documents());
  const auto message = client::message_of<Message>(*answer);
  if (output.is_document() || !message) return print_document(console, output, *answer);
  console.out(page_of(*message));
  return console.out_failed() ? kFailure : kOk;
}

struct NamedAlert {
  std::vector<std::string> name;
  std::optional<std::string> comment;
  Output output;
};

// An empty name would lead to the list.
bool is_unnamed(const NamedAlert& named) {
  return named.name.front().empty();
}

std::string path_of(std::string_view list, const NamedAlert& named) {
  return fmt::format("{}/{}", list, base::percent_encoded(named.name.front()));
}

std::vector<ListFilter> alert_filters() {
  return {{"--state", "states", Kind::kConstants, "STATE",
           "only alerts in this state: pending, firing, resolved"},
          {"--severity", "severity", Kind::kConstant, "SEVERITY",
           "only this severity and above: info, warning, critical"},
          {"--rule", "rule", Kind::kText, "NAME", "only alerts of this rule; '*' is any text"},
          {"--node", "node", Kind::kText, "NODE", "only alerts about this node and its GPUs"}};
}

std::vector<ListColumn<v1::Alert>> alert_columns() {
  using A = v1::Alert;
  using base::Instant;
  return {
      {.key = "id", .column = {.title = "ID"}, .cell = [](const A& a, Instant) { return a.id(); }},
      {.key = "severity",
       .column = {.title = "SEVERITY"},
       .cell = [](const A& a, Instant) { return severity_of(a); },
       .rank = [](const A& a, Instant) { return static_cast<double>(a.severity()); }},
      {.key = "state",
       .column = {.title = "STATE", .cut_to = 8, .wraps = true},
       .cell = [](const A& a, Instant) { return state_of(a); }},
      {.key = "rule",
       .column = {.title = "RULE", .cut_to = 10, .expendable = 2, .wraps = true},
       .cell = [](const A& a, Instant) { return a.rule(); }},
      {.key = "since",
       .column = {.title = "SINCE", .expendable = 1},
       .cell = [](const A& a, Instant) { return minute_of(a.since()); },
       .rank = [](const A& a, Instant) { return time_rank(a.since()); }},
      {.key = "summary",
       .column = {.title = "SUMMARY", .cut_to = 20, .wraps = true},
       .cell = [](const A& a, Instant) { return a.summary(); }},
      {.key = "about",
       .column = {.title = "ABOUT", .cut_to = 20, .wraps = true},
       .cell = [](const A& a, Instant) { return labels_of(a); },
       .is_wide = true}};
}

std::vector<ListColumn<v1::Silence>> silence_columns() {
  using S = v1::Silence;
  using base::Instant;
  return {{.key = "id",
           .column = {"ID", Column::Align::kRight},
           .cell = [](const S& s, Instant) { return s.id(); }},
          {.key = "about",
           .column = {.title = "ABOUT", .cut_to = 16, .wraps = true},
           .cell = [](const S& s, Instant) { return matchers_of(s); }},
          {.key = "until",
           .column = {.title = "UNTIL"},
           .cell = [](const S& s, Instant) { return minute_of(s.until()); },
           .rank = [](const S& s, Instant) { return time_rank(s.until()); }},
          {.key = "by",
           .column = {.title = "BY", .cut_to = 8, .wraps = true},
           .cell = [](const S& s, Instant) { return s.made_by(); }},
          {.key = "comment",
           .column = {.title = "COMMENT", .cut_to = 12, .expendable = 1, .wraps = true},
           .cell = [](const S& s, Instant) { return s.comment(); }}};
}

// "gpu_temperature ≥ 85 °C for 1m"; what is only true or false has no threshold.
std::string condition_of(const v1::AlertRule& rule) {
  std::string text = rule.signal();
  if (!rule.unit().empty()) {
    text += fmt::format(" {} {} {}", rule.below() ? "<=" : ">=", rule.threshold(), rule.unit());
  }
  if (rule.for_seconds() > 0) {
    const auto hold = base::milliseconds(static_cast<std::int64_t>(rule.for_seconds() * 1000));
    text += " for " + base::written(hold);
  }
  return text;
}

std::vector<ListColumn<v1::AlertRule>> rule_columns() {
  using R = v1::AlertRule;
  using base::Instant;
  return {{.key = "name",
           .column = {.title = "NAME", .cut_to = 12, .wraps = true},
           .cell = [](const R& r, Instant) { return r.name(); }},
          {.key = "severity",
           .column = {.title = "SEVERITY"},
           .cell = [](const R& r,
                      Instant) { return base::to_lower(name_at(r, R::kSeverityFieldNumber)); }},
          {.key = "enabled",
           .column = {.title = "ON"},
           .cell = [](const R& r, Instant) { return std::string(r.enabled() ? "yes" : "no"); }},
          {.key = "condition",
           .column = {.title = "FIRES AT", .cut_to = 16, .wraps = true},
           .cell = [](const R& r, Instant) { return condition_of(r); }},
          {.key = "origin",
           .column = {.title = "FROM", .expendable = 1},
           .cell = [](const R& r, Instant) { return r.origin(); }},
          {.key = "advice",
           .column = {.title = "WHAT HELPS", .cut_to = 20, .wraps = true},
           .cell = [](const R& r, Instant) { return r.advice(); },
           .is_wide = true}};
}

std::vector<ListColumn<v1::AlertChannel>> channel_columns() {
  using C = v1::AlertChannel;
  using base::Instant;
  const auto count = [](std::uint64_t number) { return fmt::format("{}", number); };
  return {{.key = "name",
           .column = {.title = "NAME", .cut_to = 10, .wraps = true},
           .cell = [](const C& c, Instant) { return c.name(); }},
          {.key = "kind",
           .column = {.title = "KIND"},
           .cell = [](const C& c, Instant) { return c.kind(); }},
          {.key = "sent",
           .column = {"SENT", Column::Align::kRight},
           .cell = [count](const C& c, Instant) { return count(c.sent()); }},
          {.key = "waiting",
           .column = {"WAITING", Column::Align::kRight},
           .cell = [count](const C& c, Instant) { return count(c.waiting()); }},
          {.key = "refused",
           .column = {"REFUSED", Column::Align::kRight},
           .cell = [count](const C& c, Instant) { return count(c.refused()); }},
          {.key = "dropped",
           .column = {"DROPPED", Column::Align::kRight},
           .cell = [count](const C& c, Instant) { return count(c.dropped()); },
           .is_wide = true},
          {.key = "last",
           .column = {.title = "LAST SENT", .expendable = 1},
           .cell = [](const C& c, Instant) { return minute_of(c.last_sent()); },
           .rank = [](const C& c, Instant) { return time_rank(c.last_sent()); }},
          {.key = "problem",
           .column = {.title = "PROBLEM", .cut_to = 16, .wraps = true},
           .cell = [](const C& c, Instant) { return c.problem(); },
           .is_left_out_if_empty = true}};
}

struct SilenceOptions {
  std::vector<std::string> matchers;
  std::optional<std::string> duration, until, comment;
  Output output;
};

base::Result<v1::CreateSilenceRequest> request_of(const SilenceOptions& o, base::Instant now) {
  v1::CreateSilenceRequest request;
  for (const std::string& word : o.matchers) {
    TRY(check_text("LABEL=VALUE", word));
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return base::invalid("LABEL=VALUE",
                           fmt::format("'{}' is no matcher such as node=dgx-1", word));
    }
    const std::string label = word.substr(0, equals);
    if (request.matchers().contains(label)) {
      return base::invalid("LABEL=VALUE",
                           fmt::format("'{}' is given twice; make a silence for each", label));
    }
    (*request.mutable_matchers())[label] = word.substr(equals + 1);
  }
  if (o.comment) {
    TRY(check_text("--comment", *o.comment));
    request.set_comment(*o.comment);
  }
  if (o.duration.has_value() == o.until.has_value()) {
    return base::invalid("--duration", "give either this (4h) or --until");
  }
  if (o.until) {
    TRY(put_future_time("--until", *o.until, now, *request.mutable_until()));
    return request;
  }
  const auto duration = base::parse_duration(*o.duration);
  if (!duration) return base::invalid("--duration", duration.error().message);
  request.set_duration_seconds(static_cast<double>(base::whole_milliseconds(*duration)) / 1000);
  return request;
}

}  // namespace

int run_alerts_list(const CommandText& text, Invocation& invocation) {
  const List<v1::Alert> list{.pages = kAlerts,
                             .names = {"alerts", "id"},
                             .filters = alert_filters(),
                             .columns = alert_columns(),
                             .nothing = "there are no alerts"};
  return ListCommand(list, &v1::ListAlertsResponse::alerts).run(text, invocation);
}

int run_alerts_silences(const CommandText& text, Invocation& invocation) {
  const List<v1::Silence> list{.pages = kSilences,
                               .names = {"silences", "id"},
                               .columns = silence_columns(),
                               .nothing = "there are no silences"};
  return ListCommand(list, &v1::ListSilencesResponse::silences).run(text, invocation);
}

int run_alerts_rules(const CommandText& text, Invocation& invocation) {
  const List<v1::AlertRule> list{
      .pages = kRules, .names = {"rules", "name"}, .columns = rule_columns()};
  return ListCommand(list, &v1::ListAlertRulesResponse::rules).run(text, invocation);
}

int run_alerts_channels(const CommandText& text, Invocation& invocation) {
  const List<v1::AlertChannel> list{.pages = kChannels,
                                    .names = {"channels", "name"},
                                    .columns = channel_columns(),
                                    .nothing = "the site has no channels (alerts.channels)"};
  return ListCommand(list, &v1::ListAlertChannelsResponse::channels).run(text, invocation);
}

int run_alerts_show(const CommandText& text, Invocation& invocation) {
  NamedAlert named;
  Arguments arguments(text);
  arguments.words("ID", named.name, 1, 1, "the alert").output(named.output, {"", "id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (is_unnamed(named)) return usage_error(invocation.console, "ID: is empty", text.name);
  return show_one<v1::Alert>(invocation.console, client->get(path_of("/v1/alerts", named)),
                             named.output);
}

int run_alerts_ack(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  NamedAlert named;
  Arguments arguments(text);
  arguments.words("ID", named.name, 1, 1, "the alert")
      .option("--comment", named.comment, "TEXT", "what you do about it")
      .output(named.output, {"", "id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (is_unnamed(named)) return usage_error(console, "ID: is empty", text.name);
  v1::AcknowledgeAlertRequest request;
  if (named.comment) {
    if (const auto fine = check_text("--comment", *named.comment); !fine) {
      return usage_error(console, fmt::format("{}: {}", fine.error().field, fine.error().message),
                         text.name);
    }
    request.set_comment(*named.comment);
  }
  const std::string path = path_of("/v1/alerts", named) + "/acknowledge";
  return show_one<v1::Alert>(console, client->post(path, client::request_text(request)),
                             named.output);
}

int run_alerts_silence(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  SilenceOptions o;
  Arguments arguments(text);
  arguments
      .words("LABEL=VALUE", o.matchers, 1, 16,
             "what it is about: rule, severity, node, gpu, gpu_index, type, rack, job, user, team, "
             "channel; '*' is any text")
      .option("--duration", o.duration, "DURATION", "how long: 4h, 2d")
      .option("--until", o.until, "TIME", "its end, instead of --duration")
      .option("--comment", o.comment, "TEXT", "why")
      .output(o.output, {"", "id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const auto request = request_of(o, console.process_environment().now());
  if (!request) {
    return usage_error(
        console, fmt::format("{}: {}", request.error().field, request.error().message), text.name);
  }
  return show_one<v1::Silence>(
      console, client->post("/v1/silences", client::request_text(*request)), o.output);
}

int run_alerts_end_silence(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  NamedAlert named;
  Arguments arguments(text);
  arguments.words("ID", named.name, 1, 1, "the silence").output(named.output, {"", "id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (is_unnamed(named)) return usage_error(console, "ID: is empty", text.name);
  const auto answer = client->remove(path_of("/v1/silences", named));
  if (!answer) return report(console, answer.error(), named.output.wants_documents());
  if (named.output.is_document()) return print_document(console, named.output, *answer);
  console.out(fmt::format("silence {} is over\n", harmless(named.name.front())));
  return console.out_failed() ? kFailure : kOk;
}

int run_alerts_test(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  NamedAlert named;
  Arguments arguments(text);
  arguments.words("CHANNEL", named.name, 1, 1, "the channel").output(named.output, {"", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (is_unnamed(named)) return usage_error(console, "CHANNEL: is empty", text.name);
  const auto answer = client->post(path_of("/v1/alert_channels", named) + "/test", "{}");
  if (!answer) return report(console, answer.error(), named.output.wants_documents());
  if (named.output.is_document()) return print_document(console, named.output, *answer);
  console.out(fmt::format("the channel {} took a message\n", harmless(named.name.front())));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
