#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>
#include <pwd.h>

#include "base/utc.h"
#include "cli/text/local_clock.h"
#include "client/answer.h"
#include "gpu_platform/v1/statistics.pb.h"
#include "http/http.h"
#include "shims/command_call.h"
#include "shims/options/common_options.h"
#include "shims/steps/step_variables.h"
#include "shims/text/columns.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_calls.h"
#include "shims/views/job_view.h"
#include "shims/views/usage_report.h"

// sreport: what the accounts and users held in some time, and how much of the cluster that was.

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kReportSynopsis =
    "[options] cluster Utilization|AccountUtilizationByUser|UserUtilizationByAccount | "
    "user TopUsage [KEY=VALUE…]";

constexpr Option kReportRows[] = {
    {"tres", 'T', Take::kValue, Rule::kHonoured, "", "SREPORT_TRES"},
    {"time", 't', Take::kValue, Rule::kHonoured, "", ""},
    {"noheader", 'n', Take::kNothing, Rule::kHonoured, "", ""},
    {"parsable", 'p', Take::kNothing, Rule::kHonoured, "", ""},
    {"parsable2", 'P', Take::kNothing, Rule::kHonoured, "", ""},
    {"quiet", 'Q', Take::kNothing, Rule::kAccepted, "", ""},
    {"all_clusters", 'a', Take::kNothing, Rule::kAccepted, "", ""},
    {"cluster", 0, Take::kValue, Rule::kIgnored, "there is one cluster", "SREPORT_CLUSTER"},
    {"local", 0, Take::kNothing, Rule::kAccepted, "", "SREPORT_LOCAL"},
    {"federation", 0, Take::kNothing, Rule::kAccepted, "", "SREPORT_FEDERATION"},
};
constexpr auto kReportOptions = joined(kReportRows, kVerboseOption, kHelpOption, kCommonOptions);

enum class ReportKind : std::uint8_t { kUtilization, kByAccount, kByUser, kTop };

// How times are printed: a number of a unit, a percentage of the whole, or both.
struct Scale {
  std::string_view name;  // in the titles
  double seconds = 60;
  bool has_number = true;
  bool has_percent = false;
};

struct Report {
  ReportKind kind = ReportKind::kTop;
  Period period;
  Scale scale;
  std::vector<std::string> resources;
  std::string users;
  std::string accounts;
  std::string format;
  std::size_t top = 10;
  bool groups_accounts = false;
};

// One line: a resource, and what was held of it.
struct Line {
  std::string account;
  std::string user;
  std::string resource;
  double used = 0;   // seconds
  double whole = 0;  // the whole cluster's
  const Scale* scale = nullptr;
};

// The first part of the comment field of the account database; empty where there is none.
std::string full_name(const std::string& user) {
  const passwd* entry = user.empty() ? nullptr : ::getpwnam(user.c_str());
  const std::string_view gecos = entry == nullptr ? "" : entry->pw_gecos;
  return std::string(gecos.substr(0, gecos.find(',')));
}

std::string amount(const Line& line, double seconds) {
  const double percent = line.whole > 0 ? seconds / line.whole * 100 : 0;
  const std::string number = fmt::format("{}", std::llround(seconds / line.scale->seconds));
  const std::string part = fmt::format("{:.2f}%", percent);
  if (!line.scale->has_percent) return number;
  return line.scale->has_number ? fmt::format("{}({})", number, part) : part;
}

std::span<const Field<Line>> report_fields() {
  static const std::vector<Field<Line>> kFields = {
      {0, "Cluster", "Cluster", [](const Line&) { return std::string(kCluster); }, 9},
      {0, "Accounts", "Account", [](const Line& line) { return line.account; }, 15},
      {0, "Account", "Account", [](const Line& line) { return line.account; }, 15},
      {0, "Login", "Login", [](const Line& line) { return line.user; }, 9},
      {0, "Proper", "Proper Name", [](const Line& line) { return full_name(line.user); }, 15},
      {0, "TresName", "TRES Name", [](const Line& line) { return line.resource; }, 14},
      {0, "Used", "Used", [](const Line& line) { return amount(line, line.used); }, 10},
      {0, "Energy", "Energy", [](const Line&) { return std::string("0"); }, 8},
      {0, "Allocated", "Allocated", [](const Line& line) { return amount(line, line.used); }, 12},
      {0, "Idle", "Idle",
       [](const Line& line) { return amount(line, std::max(0.0, line.whole - line.used)); }, 12},
      {0, "Reported", "Reported", [](const Line& line) { return amount(line, line.whole); }, 12},
      {0, "Down", "Down", [](const Line& line) { return amount(line, 0); }, 10},
      {0, "PlannedDown", "PLND Down", [](const Line& line) { return amount(line, 0); }, 10},
      {0, "Planned", "Planned", [](const Line& line) { return amount(line, 0); }, 10},
      {0, "OverCommitted", "Over Comm", [](const Line& line) { return amount(line, 0); }, 10},
  };
  return kFields;
}

std::string usual_report_format(const Report& report) {
  const bool names_resource = report.resources.size() > 1 || report.resources.front() != "cpu";
  const std::string resource = names_resource ? "TresName," : "";
  switch (report.kind) {
    case ReportKind::kUtilization:
      return "Cluster," + resource + "Allocated,Down,PlannedDown,Idle,Planned,Reported";
    case ReportKind::kByAccount:
      return "Cluster,Accounts,Login,Proper," + resource + "Used,Energy";
    case ReportKind::kByUser:
      return "Cluster,Login,Proper,Accounts," + resource + "Used,Energy";
    case ReportKind::kTop:
      return "Cluster,Login,Proper,Accounts," + resource + "Used,Energy";
  }
  return {};
}

std::string title_of(const Report& report) {
  switch (report.kind) {
    case ReportKind::kUtilization:
      return "Cluster Utilization";
    case ReportKind::kByAccount:
      return "Cluster/Account/User Utilization";
    case ReportKind::kByUser:
      return "Cluster/User/Account Utilization";
    case ReportKind::kTop:
      return fmt::format("Top {} Users", report.top);
  }
  return {};
}

// A word may be cut where that is clear, in upper or lower case.
bool is_word(std::string_view given, std::string_view word, std::size_t least) {
  return given.size() >= least && lower_case(word).starts_with(lower_case(given));
}

base::Result<ReportKind> report_kind(std::span<const std::string> words) {
  const std::string section = words.empty() ? "" : words[0];
  const std::string name = words.size() < 2 ? "" : words[1];
  if (is_word(section, "cluster", 2)) {
    if (is_word(name, "Utilization", 2)) return ReportKind::kUtilization;
    if (is_word(name, "AccountUtilizationByUser", 1)) return ReportKind::kByAccount;
    if (is_word(name, "UserUtilizationByAccount", 2)) return ReportKind::kByUser;
  }
  if (is_word(section, "user", 1) && is_word(name, "TopUsage", 1)) return ReportKind::kTop;
  return base::invalid(
      {}, fmt::format("'{}{}{}' is not supported: cluster Utilization, cluster "
                      "AccountUtilizationByUser, cluster UserUtilizationByAccount and user "
                      "TopUsage are; sacct has single jobs",
                      section, name.empty() ? "" : " ", name));
}

base::Result<Scale> scale_of(const Settings& settings) {
  const std::string given = settings.has("time") ? settings.value("time") : "minutes";
  constexpr std::pair<std::string_view, Scale> kScales[] = {
      {"secper", {"Seconds/Percentage of Total", 1, true, true}},
      {"minper", {"Minutes/Percentage of Total", 60, true, true}},
      {"hourper", {"Hours/Percentage of Total", 3600, true, true}},
      {"seconds", {"Seconds", 1, true, false}},
      {"minutes", {"Minutes", 60, true, false}},
      {"hours", {"Hours", 3600, true, false}},
      {"percent", {"Percentage of Total", 1, false, true}}};
  for (const auto& [name, scale] : kScales) {
    // "sec" are seconds: only the whole word adds the percentage.
    if (is_word(given, name, name.ends_with("per") ? name.size() : 1)) return scale;
  }
  return base::invalid("--time", fmt::format("'{}' is not one of SecPer, MinPer, HourPer, Seconds, "
                                             "Minutes, Hours and Percent",
                                             given));
}

base::Result<std::vector<std::string>> resources_of(const Settings& settings) {
  if (!settings.has("tres")) return std::vector<std::string>{"cpu"};
  std::vector<std::string> resources;
  for (const std::string& name : comma_separated(lower_case(settings.value("tres")))) {
    if (name == "all")
      return std::vector<std::string>{std::begin(kCountedResources), std::end(kCountedResources)};
    if (!is_counted(name)) {
      return base::invalid(
          "--tres", fmt::format("'{}' is not counted: cpu, mem, node and gres/gpu are", name));
    }
    resources.push_back(name);
  }
  if (resources.empty()) return base::invalid("--tres", "names no resource");
  return resources;
}

// Unless asked otherwise: all of yesterday.
base::Status read_key(std::string_view word, base::Instant now, Report& report) {
  const std::size_t equals = word.find('=');
  const std::string key = lower_case(word.substr(0, equals));
  const std::string value(equals == std::string_view::npos ? "" : word.substr(equals + 1));
  if (is_word(key, "start", 1)) {
    TRY_ASSIGN(report.period.begin, parse_time_expression("start", value, now));
  } else if (is_word(key, "end", 1)) {
    TRY_ASSIGN(report.period.end, parse_time_expression("end", value, now));
  } else if (is_word(key, "users", 1)) {
    report.users = value;
  } else if (is_word(key, "accounts", 2)) {
    report.accounts = value;
  } else if (is_word(key, "format", 1)) {
    report.format = value;
  } else if (is_word(key, "topcount", 2)) {
    TRY_ASSIGN(report.top, parse_number(value, 1));
  } else if (is_word(key, "group", 1)) {
    report.groups_accounts = true;
  } else if (!is_word(key, "clusters", 1) && !is_word(key, "all_clusters", 2) &&
             !is_word(key, "tree", 2)) {
    return base::invalid({},
                         fmt::format("'{}' is not a key of a report: start, end, users, accounts, "
                                     "format, topcount and group are",
                                     word));
  }
  return {};
}

base::Result<Report> report_of(const Given& given, base::Instant now) {
  Report report;
  TRY_ASSIGN(report.kind, report_kind(given.words));
  TRY_ASSIGN(report.scale, scale_of(given.settings));
  TRY_ASSIGN(report.resources, resources_of(given.settings));
  TRY_ASSIGN(report.period.end, parse_time_expression("end", "midnight", now));
  const base::Instant yesterday = report.period.end + (base::Duration() - base::hours(1));
  TRY_ASSIGN(report.period.begin, parse_time_expression("start", "midnight", yesterday));
  for (const std::string& word : std::span(given.words).subspan(2)) {
    TRY(read_key(word, now, report));
  }
  if (report.period.end <= report.period.begin) {
    return base::invalid({}, "the report's end must be after its start");
  }
  if (report.format.empty()) report.format = usual_report_format(report);
  return report;
}

// Every user's lines together, the greatest use first; of the first resource.
void sort_and_cut(const Report& report, std::vector<std::vector<Line>>& groups) {
  const auto used = [](const std::vector<Line>& lines) { return lines.front().used; };
  if (report.kind == ReportKind::kTop) std::ranges::stable_sort(groups, std::greater(), used);
  if (report.kind == ReportKind::kByUser) {
    std::ranges::stable_sort(groups, {}, [](const auto& lines) { return lines.front().user; });
  }
  if (report.kind == ReportKind::kTop && groups.size() > report.top) groups.resize(report.top);
}

// `recorded`: the part of the period in which there was a cluster.
std::vector<Line> lines_of(const Report& report, const HeldBy& usage, const Held& capacity,
                           const Period& recorded) {
  const double seconds = static_cast<double>(base::whole_milliseconds(recorded.length())) / 1000;
  std::map<std::pair<std::string, std::string>, Held> rows;
  for (const auto& [who, held] : usage) {
    const auto& [account, user] = who;
    if (!report.users.empty() && !is_listed(user, report.users)) continue;
    if (!report.accounts.empty() && !is_listed(account, report.accounts)) continue;
    const bool is_one = report.kind == ReportKind::kUtilization;
    auto& row = rows[{is_one || report.groups_accounts ? "" : account, is_one ? "" : user}];
    for (const auto& [resource, amount] : held) row[resource] += amount;
  }
  if (report.kind == ReportKind::kUtilization) rows[{"", ""}];
  std::vector<std::vector<Line>> groups;
  for (const auto& [who, held] : rows) {
    auto& group = groups.emplace_back();
    for (const std::string& resource : report.resources) {
      const auto found = held.find(resource);
      const auto whole = capacity.find(resource);
      group.push_back({.account = who.first,
                       .user = who.second,
                       .resource = resource,
                       .used = found == held.end() ? 0 : found->second,
                       .whole = whole == capacity.end() ? 0 : whole->second * seconds,
                       .scale = &report.scale});
    }
  }
  sort_and_cut(report, groups);
  std::vector<Line> lines;
  for (auto& group : groups) std::ranges::move(group, std::back_inserter(lines));
  return lines;
}

std::string heading(const Report& report) {
  constexpr std::string_view kRule =
      "--------------------------------------------------------------------------------\n";
  const bool is_cpu = report.resources == std::vector<std::string>{"cpu"};
  const base::Instant last(report.period.end.unix_ns() - 1'000'000'000);
  return fmt::format("{}{} {} - {} ({} secs)\nUsage reported in {} {}\n{}", kRule, title_of(report),
                     slurm_time(report.period.begin, ""), slurm_time(last, ""),
                     base::whole_milliseconds(report.period.length()) / 1000,
                     is_cpu ? "CPU" : "TRES", report.scale.name, kRule);
}

// When the records of the cluster begin; nothing if the daemon does not say so.
client::Called<std::optional<base::Instant>> records_since(client::Client& client) {
  const auto answer = client.ask<v1::Statistics>("/v1/statistics", "statistics");
  if (!answer) return std::unexpected(answer.error());
  return client::time_of(answer->records_since());
}

client::Called<std::vector<v1::Job>> jobs_since(client::Client& client, base::Instant since) {
  std::string query = "all=true";
  std::string text;
  base::append_rfc3339(text, since);
  http::append_query(query, "since", text);
  return list_jobs(client, query);
}

}  // namespace

std::span<const Option> sreport_options() {
  return kReportOptions;
}

int sreport(CommandCall& call) {
  const auto given = call.given({kReportOptions, kReportSynopsis, true});
  if (!given) return given.error();
  const base::Instant now = call.around().now();
  const auto report = report_of(*given, now);
  if (!report) return call.fail(report.error());
  const auto named = named_columns(report->format, '%', 0);
  if (!named) return call.fail(named.error());
  const auto columns = bound<Line>(*named, report_fields());
  if (!columns) return call.fail(columns.error());
  auto client = call.client();
  if (!client) return 1;
  const auto status = client->get("/v1/status");
  if (!status) return call.fail(status.error());
  const auto cluster = client::message_of<v1::Status>(*status);
  if (!cluster) return call.fail("the daemon's answer is not a JSON object");
  const auto since = records_since(*client);
  if (!since) return call.fail(since.error());
  const Period recorded = recorded_part(report->period, *since);
  const auto jobs = jobs_since(*client, report->period.begin);
  if (!jobs) return call.fail(jobs.error());
  if (own_user() != "root") call.warn("only jobs that you may see are counted");
  if (recorded.begin != report->period.begin) {
    call.warn(fmt::format("the records of the cluster begin at {}; the time before is not counted",
                          slurm_time(**since, "")));
  }
  const auto lines =
      lines_of(*report, usage_of(*jobs, report->period, now), capacity_of(*cluster), recorded);
  const Settings& settings = given->settings;
  const bool has_header = !settings.has("noheader");
  const bool is_parsable = settings.has("parsable") || settings.has("parsable2");
  std::string text = has_header ? heading(*report) : "";
  text += is_parsable ? parsable(*columns, lines, has_header, {"|", settings.has("parsable")})
                      : accounted(*columns, lines, has_header);
  call.console().out(text);
  return call.console().out_failed() ? 1 : 0;
}

}  // namespace gpu_platform::shims
