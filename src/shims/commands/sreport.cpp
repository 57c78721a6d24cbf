#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <span>

#include <fmt/format.h>
#include <pwd.h>

#include "base/utc.h"
#include "cli/text/local_clock.h"
#include "client/answer.h"
#include "gpu_platform/v1/shares.pb.h"
#include "gpu_platform/v1/statistics.pb.h"
#include "gpu_platform/v1/usage.pb.h"
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

// sreport: what the accounts and users used in some time, and how much of the cluster that was.

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
  bool is_of_other_cluster = false;

  // The resources that the ledger has.
  LedgerColumns ledger() const;
  bool has_attempts() const { return ledger().resources.size() < resources.size(); }
};

LedgerColumns Report::ledger() const {
  LedgerColumns columns;
  std::ranges::copy_if(resources, std::back_inserter(columns.resources), is_of_ledger);
  columns.with_types = std::ranges::any_of(columns.resources, names_type);
  return columns;
}

// One line: a resource, and what was used of it.
struct Line {
  std::string account;
  std::string user;
  std::string resource;
  double used = 0;  // seconds
  Portions whole;   // the whole cluster's
  const Scale* scale = nullptr;
};

// What the daemon says of the period.
struct Facts {
  v1::Status cluster;
  v1::Usage usage;
  AccountParents parents;
  HeldBy held;
  double seconds = 0;  // of the period, as far as it is over and recorded
};

// The first part of the comment field of the account database; empty where there is none.
std::string full_name(const std::string& user) {
  const passwd* entry = user.empty() ? nullptr : ::getpwnam(user.c_str());
  const std::string_view gecos = entry == nullptr ? "" : entry->pw_gecos;
  return std::string(gecos.substr(0, gecos.find(',')));
}

std::string amount(const Line& line, double seconds) {
  const double whole = line.whole.whole();
  const double percent = whole > 0 ? seconds / whole * 100 : 0;
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
      {0, "Idle", "Idle", [](const Line& line) { return amount(line, line.whole.idle); }, 12},
      {0, "Reported", "Reported", [](const Line& line) { return amount(line, line.whole.whole()); },
       12},
      {0, "Down", "Down", [](const Line& line) { return amount(line, line.whole.down); }, 10},
      {0, "PlannedDown", "PLND Down",
       [](const Line& line) { return amount(line, line.whole.planned_down); }, 10},
      {0, "Planned", "Planned", [](const Line& line) { return amount(line, line.whole.planned); },
       10},
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
      return base::invalid("--tres",
                           fmt::format("'{}' is not counted: cpu, mem, node, billing, gres/gpu and "
                                       "gres/gpu:TYPE are",
                                       name));
    }
    if (std::ranges::find(resources, name) == resources.end()) resources.push_back(name);
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
  } else if (is_word(key, "clusters", 1)) {
    report.is_of_other_cluster = !value.empty() && !is_listed(kCluster, value);
  } else if (!is_word(key, "all_clusters", 2) && !is_word(key, "tree", 2)) {
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
  // As Slurm does it: a report is at least of an hour.
  if (report.period.end <= report.period.begin) {
    report.period.end = report.period.begin + base::hours(1);
  }
  if (report.format.empty()) report.format = usual_report_format(report);
  return report;
}

using ReportRows = std::vector<std::pair<std::pair<std::string, std::string>, Held>>;

// The greatest use of the first resource first, or users by name, or accounts as a tree.
void sort_and_cut(const Report& report, const AccountParents& parents, ReportRows& rows) {
  if (report.kind == ReportKind::kTop) {
    const auto used = [&](const auto& row) {
      const auto found = row.second.find(report.resources.front());
      return found == row.second.end() ? 0 : found->second;
    };
    std::ranges::stable_sort(rows, std::greater(), used);
    if (rows.size() > report.top) rows.resize(report.top);
  } else if (report.kind == ReportKind::kByUser) {
    std::ranges::stable_sort(rows, {}, [](const auto& row) { return row.first.second; });
  } else if (report.kind == ReportKind::kByAccount && !report.groups_accounts) {
    std::ranges::stable_sort(rows, {}, [&](const auto& row) {
      return std::pair(lineage_of(row.first.first, parents), row.first.second);
    });
  }
}

// The accounts and users that the report is about.
ReportRows chosen_rows(const Report& report, const Facts& facts) {
  HeldBy all = facts.held;
  const bool has_accounts =
      report.kind == ReportKind::kByAccount && !report.groups_accounts && report.users.empty();
  if (has_accounts) add_accounts(facts.parents, all);
  const bool is_one = report.kind == ReportKind::kUtilization;
  HeldBy chosen;
  if (is_one) chosen[{"", ""}];
  for (const auto& [owner, held] : all) {
    const auto& [account, user] = owner;
    if (user.empty() && !has_accounts && !is_one) continue;
    if (!report.users.empty() && !is_listed(user, report.users)) continue;
    if (!report.accounts.empty() && !is_listed(account, report.accounts)) continue;
    Held& row = chosen[{is_one || report.groups_accounts ? "" : account, is_one ? "" : user}];
    for (const auto& [resource, seconds] : held) row[resource] += seconds;
  }
  ReportRows rows(chosen.begin(), chosen.end());
  sort_and_cut(report, facts.parents, rows);
  return rows;
}

// What became of all there is of the resource. Where the daemon does not say it, the cluster has
// what it has now, and what was not used was idle.
Portions whole_of(const Report& report, const Facts& facts, const std::string& resource,
                  double used) {
  if (is_of_ledger(resource)) {
    if (const auto told = portions_of(facts.usage, resource, report.ledger())) return *told;
  }
  Portions portions{.used = used};
  const double capacity = capacity_of(facts.cluster, resource) * facts.seconds;
  portions.idle = std::max(0.0, capacity - used);
  return portions;
}

std::vector<Line> lines_of(const Report& report, const Facts& facts) {
  std::vector<Line> lines;
  if (report.is_of_other_cluster) return lines;
  std::map<std::string, double> used_by_all;
  for (const auto& [owner, held] : facts.held) {
    for (const auto& [resource, seconds] : held) used_by_all[resource] += seconds;
  }
  std::map<std::string, Portions> wholes;
  for (const std::string& resource : report.resources)
    wholes[resource] = whole_of(report, facts, resource, used_by_all[resource]);
  for (const auto& [owner, held] : chosen_rows(report, facts)) {
    for (const std::string& resource : report.resources) {
      const auto found = held.find(resource);
      lines.push_back({.account = owner.first,
                       .user = owner.second,
                       .resource = resource,
                       .used = found == held.end() ? 0 : found->second,
                       .whole = wholes[resource],
                       .scale = &report.scale});
    }
  }
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

// The sums of the ledger over the period, which has begun. The daemon adds up ten years at most.
client::Called<v1::Usage> usage_within(client::Client& client, const Period& period,
                                       const LedgerColumns& columns) {
  constexpr base::Duration kLongest = base::hours(24 * 3650);
  const base::Instant begin = std::max(period.begin, period.end + (base::Duration() - kLongest));
  std::string query;
  for (const auto& [field, time] : {std::pair{"since", begin}, std::pair{"until", period.end}}) {
    std::string text;
    base::append_rfc3339(text, time);
    http::append_query(query, field, text);
  }
  http::append_query(query, "group_by", "team");
  http::append_query(query, "group_by", "user");
  if (columns.with_types) http::append_query(query, "group_by", "type");
  return client.ask<v1::Usage>("/v1/usage?" + query, "usage");
}

client::Called<AccountParents> account_parents(client::Client& client) {
  const auto shares = client.ask<v1::ListSharesResponse>("/v1/shares", "the list of shares");
  if (!shares) return std::unexpected(shares.error());
  AccountParents parents;
  for (const v1::Share& share : shares->shares()) {
    if (share.user().empty() && !share.team().empty()) parents[share.team()] = share.parent();
  }
  return parents;
}

// What is summed up. Says which time is not counted.
client::Called<Facts> report_facts(CommandCall& call, client::Client& client, const Report& report,
                                   base::Instant now) {
  Facts facts;
  auto cluster = client.ask<v1::Status>("/v1/status", "the daemon's answer");
  if (!cluster) return std::unexpected(cluster.error());
  facts.cluster = std::move(*cluster);
  const auto since = records_since(client);
  if (!since) return std::unexpected(since.error());
  // What lies in the future is in no record.
  const Period over{report.period.begin, std::clamp(now, report.period.begin, report.period.end)};
  const Period recorded = recorded_part(over, *since);
  facts.seconds = static_cast<double>(base::whole_milliseconds(recorded.length())) / 1000;
  const LedgerColumns columns = report.ledger();
  const bool has_begun = base::whole_milliseconds(over.length()) > 0;
  if (!columns.resources.empty() && has_begun) {
    auto usage = usage_within(client, over, columns);
    if (!usage) return std::unexpected(usage.error());
    facts.usage = std::move(*usage);
    add_ledger(facts.usage, columns, facts.held);
  }
  if (report.has_attempts() && has_begun) {
    const auto jobs = jobs_since(client, report.period.begin);
    if (!jobs) return std::unexpected(jobs.error());
    add_attempts(*jobs, report.period, now, facts.held);
    if (recorded.begin != report.period.begin) {
      call.warn(
          fmt::format("the records of the cluster begin at {}; the time before is not "
                      "counted",
                      slurm_time(**since, "")));
    }
  }
  if (report.kind == ReportKind::kByAccount) {
    auto parents = account_parents(client);
    if (!parents) return std::unexpected(parents.error());
    facts.parents = std::move(*parents);
  }
  return facts;
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
  const auto facts = report_facts(call, *client, *report, now);
  if (!facts) return call.fail(facts.error());
  if (own_user() != "root") call.warn("only jobs that you may see are counted");
  const auto lines = lines_of(*report, *facts);
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
