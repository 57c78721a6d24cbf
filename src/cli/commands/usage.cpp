#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "accounting/usage_query.h"
#include "cli/commands.h"
#include "cli/screen/repeat.h"
#include "cli/text/usage_text.h"
#include "cli/words/input.h"
#include "cli/words/list_command.h"
#include "cli/words/pages.h"
#include "cli/words/report_window.h"
#include "http/http.h"
#include "os/replaced_file.h"

// What was used, and what it cost.

namespace gpu_platform::cli {

namespace {

constexpr PagedList kLedger{"/v1/ledger", "lines", 10'000};

struct UsageOptions {
  ReportWindow window;
  std::vector<std::string> by, labels;
  std::optional<std::string> step, user, team, project, gpu_type, node, job, capacity, kind;
  bool is_mine = false;
  bool is_csv = false;
  bool explains = false;
  Output output;
};

base::Status put_filters(const UsageOptions& options, std::string& query) {
  for (const auto& [field, value] :
       {std::pair{"user", &options.user}, std::pair{"team", &options.team},
        std::pair{"project", &options.project}, std::pair{"gpu_type", &options.gpu_type},
        std::pair{"node", &options.node}, std::pair{"job", &options.job},
        std::pair{"capacity", &options.capacity}}) {
    if (*value) http::append_query(query, field, **value);
  }
  if (options.kind) http::append_query(query, "kind", as_constant(*options.kind));
  for (const std::string& label : options.labels) http::append_query(query, "label", label);
  if (options.is_mine) http::append_query(query, "mine", "true");
  return {};
}

// Without --by: the jobs of one user or the members of an array, else the teams.
std::vector<std::string> groups_of(const UsageOptions& options) {
  if (!options.by.empty()) return words_of_lists(options.by);
  return {options.is_mine || options.job ? "job" : "team"};
}

base::Status check_groups(const std::vector<std::string>& groups) {
  for (auto each = groups.begin(); each != groups.end(); ++each) {
    if (!accounting::parse_usage_by(*each)) {
      return base::invalid(
          "--by", fmt::format("'{}' is not one of {}", harmless(*each), accounting::usage_bys()));
    }
    if (std::find(groups.begin(), each, *each) != each) {
      return base::invalid("--by", fmt::format("'{}' is given twice", harmless(*each)));
    }
  }
  return {};
}

// What the options ask for, without what groups it. Errors name the option.
base::Result<std::string> query_of(const UsageOptions& options, base::Instant now) {
  std::string query;
  TRY(check_groups(groups_of(options)));
  TRY(options.window.put(now, query));
  TRY(put_filters(options, query));
  return query;
}

std::string usage_target(const UsageOptions& options, std::string query) {
  for (const std::string& by : groups_of(options)) http::append_query(query, "group_by", by);
  if (options.step) http::append_query(query, "step", *options.step);
  return "/v1/usage?" + query;
}

// The lines behind the figures; the exit code.
int explain(Console& console, Client& client, const UsageOptions& options, std::string query) {
  http::append_query(query, "with_running", "true");
  if (options.output.is_document()) {
    const auto printed =
        print_pages(console, client, options.output, kLedger, query, UINT64_MAX, {});
    if (!printed) return report(console, printed.error(), true);
    return console.out_failed() ? kFailure : kOk;
  }
  std::vector<v1::LedgerLine> lines;
  const auto fetched = fetch_messages<v1::ListLedgerResponse>(
      client, kLedger, query, UINT64_MAX, {}, [&](const v1::ListLedgerResponse& page) {
        lines.insert(lines.end(), page.lines().begin(), page.lines().end());
        return page.lines_size();
      });
  if (!fetched) return report(console, fetched.error(), false);
  if (lines.empty()) {
    console.note("the ledger has no such lines");
    return kOk;
  }
  console.out("\n" + ledger_table(lines, options.output.style(console)));
  console.note("of lines that begin before the window or end after it, the figures have a part");
  return console.out_failed() ? kFailure : kOk;
}

// ---- report monthly

struct MonthlyOptions {
  std::optional<std::string> month, team, format, file;
  bool is_json = false;
};

base::Status check_format(MonthlyOptions& options) {
  if (options.is_json) {
    if (options.format && *options.format != "json") {
      return base::invalid("--json", "cannot be given with another --format");
    }
    options.format = "json";
  }
  const std::string format = options.format.value_or("table");
  for (const std::string_view known : {"table", "csv", "json", "html"}) {
    if (format == known) return {};
  }
  return base::invalid("--format",
                       fmt::format("'{}' is not one of table, csv, json, html", format));
}

// Teams that are gone have their use, so a name that is not known is no error.
void note_no_use(Console& console, const std::string& team) {
  console.note(fmt::format("there is no use of team '{}' in that time", harmless(team)));
}

int print_or_write(Console& console, const std::optional<std::string>& file,
                   const std::string& text) {
  if (!file) {
    console.out(text);
    return console.out_failed() ? kFailure : kOk;
  }
  constexpr mode_t kReadableByAll = 0644;
  const auto written =
      os::replace_file(*file, text, kReadableByAll & ~console.process_environment().umask);
  if (written) return kOk;
  console.error(fmt::format("--output '{}': {}", harmless(*file), written.error().message));
  return kFailure;
}

}  // namespace

int run_usage(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  UsageOptions options;
  Arguments arguments(text);
  arguments.flag("--mine", options.is_mine, "only what you used");
  options.window.add_to(arguments, kMonthOfEnd);
  arguments
      .many("--by", options.by, "FIELD,…",
            "sums for each user, team, project, type, node, job, kind, priority, capacity, "
            "label:KEY (default: team; job with --mine)")
      .option("--step", options.step, "STEP", "sums for each hour, day or month")
      .option("--user", options.user, "NAME", "only what this user used")
      .option("--team", options.team, "TEAM", "only this team and those below it")
      .option("--project", options.project, "NAME", "only this project")
      .option("--type", options.gpu_type, "TYPE", "only GPUs of this type or family")
      .option("--node", options.node, "NAME", "only this node")
      .option("--job", options.job, "ID", "only this job, since it was submitted")
      .many("--label", options.labels, "KEY=VALUE", "only jobs with this label; may be repeated")
      .option("--capacity", options.capacity, "CLASS",
              "only nodes of this class: on-demand, spot, reserved")
      .option("--kind", options.kind, "KIND",
              "only jobs of this kind: training, inference, interactive, batch")
      .flag("--explain", options.explains, "also the lines of the ledger behind the figures")
      .flag("--csv", options.is_csv, "print a line for each sum, for spreadsheets")
      .output(options.output, {});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (options.is_csv && (options.output.is_document() || options.explains)) {
    return usage_error(console, "--csv: cannot be given with -o, --json or --explain", text.name);
  }
  const auto query = query_of(options, console.process_environment().now());
  if (!query) return usage_error(console, query.error(), text.name);
  if (options.explains && options.output.is_document()) {
    return explain(console, *client, options, *query);
  }
  const int shown = show_message<v1::Usage>(
      console, *client, options.output, usage_target(options, *query),
      [&](Console& page, const v1::Usage& usage) {
        page.out(options.is_csv ? usage_csv(usage) : usage_page(usage, options.output.style(page)));
        if (options.team && usage.groups().empty()) note_no_use(page, *options.team);
      });
  if (shown != kOk || !options.explains) return shown;
  return explain(console, *client, options, *query);
}

int run_report_monthly(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  MonthlyOptions options;
  Arguments arguments(text);
  arguments
      .option("--month", options.month, "MONTH", "as 2026-10; in UTC (default: the present month)")
      .option("--team", options.team, "TEAM", "only this team and those below it")
      .option("--format", options.format, "table|csv|json|html",
              "its form; html is a page that prints (default: table)")
      .flag("--json", options.is_json, "short for --format json")
      .option("-o,--output", options.file, "FILE",
              "write it there; a file of that name is replaced (default: print it)");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (const auto known = check_format(options); !known) {
    return usage_error(console, known.error(), text.name);
  }
  std::string query;
  if (options.month) http::append_query(query, "month", *options.month);
  if (options.team) http::append_query(query, "team", *options.team);
  const bool is_table = options.format.value_or("table") == "table";
  if (!is_table) http::append_query(query, "format", *options.format);
  const std::string target = "/v1/reports/monthly" + (query.empty() ? query : "?" + query);
  const auto answer = client->ask<v1::MonthlyReport>(target, "a report");
  if (!answer) return report(console, answer.error(), options.is_json);
  if (options.team && answer->teams().empty()) note_no_use(console, *options.team);
  // Into a file as wide as it is.
  const TableStyle style{.width = options.file ? 0 : console.process_environment().width};
  return print_or_write(console, options.file,
                        is_table ? monthly_page(*answer, style) : answer->document());
}

int run_report_balance(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  ReportWindow window;
  Output output;
  Arguments arguments(text);
  window.add_to(arguments, kMonthOfEnd);
  arguments.output(output, {});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  std::string query;
  if (const auto put = window.put(console.process_environment().now(), query); !put) {
    return usage_error(console, put.error(), text.name);
  }
  bool balances = true;
  const int shown = show_message<v1::Balance>(
      console, *client, output, "/v1/reports/balance" + (query.empty() ? query : "?" + query),
      [&](Console& page, const v1::Balance& balance) {
        balances = balance.differences().empty();
        page.out(balance_page(balance, output.style(page)));
      });
  return shown == kOk && !balances ? kFailure : shown;
}

}  // namespace gpu_platform::cli
