#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/letters.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/json_view.h"
#include "cli/pages.h"
#include "cli/repeat.h"
#include "cli/table.h"
#include "cli/text.h"

// The audit trail.

namespace gpu_platform::cli {

namespace {

constexpr PagedList kEntries{"/v1/audit", "entries", 1'000};
// A person does not look through more.
constexpr std::uint64_t kRowsOfTable = 100;

struct Options {
  std::optional<std::string> user, owner, job, action, since, until, outcome, limit, page_token;
  bool json_lines = false;
  Output output;
};

// "port-forward" as "PORT_FORWARD".
std::string constant(std::string_view text) {
  std::string name = base::to_upper(text);
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

base::Result<std::string> query_of(const Options& o, base::Instant now) {
  std::string query;
  const std::pair<std::string_view, const std::optional<std::string>*> texts[] = {
      {"user", &o.user}, {"owner", &o.owner}, {"job", &o.job}};
  for (const auto& [key, value] : texts) {
    if (value->has_value()) http::append_query(query, key, **value);
  }
  if (o.action) http::append_query(query, "action", constant(*o.action));
  if (o.outcome) {
    const std::string outcome = constant(*o.outcome);
    const bool is_code = outcome != "OK" && outcome != "REFUSED";
    http::append_query(query, is_code ? "code" : "outcome", outcome);
  }
  const std::pair<std::string_view, const std::optional<std::string>*> times[] = {
      {"since", &o.since}, {"until", &o.until}};
  for (const auto& [key, value] : times) {
    if (!value->has_value()) continue;
    TRY_ASSIGN(const std::string time, past_time(fmt::format("--{}", key), **value, now));
    http::append_query(query, key, time);
  }
  return query;
}

// "40, 41 and 3 more"
std::string some_of(const std::vector<std::string>& names, std::uint64_t count) {
  constexpr std::size_t kShown = 3;
  const std::size_t shown = std::min(names.size(), kShown);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  if (count > shown) text += fmt::format(" and {} more", count - shown);
  return text;
}

std::string what_of(const Json& entry) {
  std::vector<std::string> parts;
  const auto jobs = texts_at(entry, "jobs");
  if (!jobs.empty()) parts.push_back("job " + some_of(jobs, count_at(entry, "job_count")));
  const auto gpus = texts_at(entry, "gpus");
  const std::string target = text_at(entry, "target");
  if (!gpus.empty()) {
    parts.push_back(some_of(gpus, count_at(entry, "gpu_count")));
  } else if (!target.empty()) {
    parts.push_back(target);
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string outcome_of(const Json& entry) {
  if (text_at(entry, "outcome") == "OK") return "ok";
  const std::uint64_t calls = count_at(entry, "calls");
  return fmt::format("{}{}: {}", text_at(entry, "code"),
                     calls > 1 ? fmt::format(" ({} calls, the last)", calls) : std::string(),
                     text_at(entry, "reason"));
}

std::string origin_of(const Json& entry) {
  const std::string pid = text_at(entry, "pid");
  std::string door = base::to_lower(text_at(entry, "door"));
  for (char& c : door) c = c == '_' ? ' ' : c;
  if (const std::string name = text_at(entry, "credential_name"); !name.empty()) {
    door += fmt::format(", {} {}", base::to_lower(text_at(entry, "credential")), name);
  } else if (const std::string token = text_at(entry, "token"); !token.empty()) {
    door += fmt::format(", token {}", token);
  }
  return pid.empty() ? door : fmt::format("{}, pid {}", door, pid);
}

Table empty_table() {
  using Align = Column::Align;
  return Table({{"WHEN", Align::kLeft, 19},
                {"USER", Align::kLeft, 6},
                {"ACTION"},
                {"WHAT", Align::kLeft, 12},
                {"FOR", Align::kLeft, 6},
                {"OUTCOME", Align::kLeft, 12},
                {"FROM", Align::kLeft, 8, 1}});
}

std::vector<std::string> entry_row(const Json& entry) {
  const auto at = time_at(entry, "at");
  return {at ? local_time(*at) : std::string(),
          text_at(entry, "user"),
          base::to_lower(text_at(entry, "action")),
          what_of(entry),
          text_at(entry, "owner"),
          outcome_of(entry),
          origin_of(entry)};
}

Called<void> print_entries(Console& console, Client& client, const Output& output,
                           const std::string& query, std::uint64_t max_rows,
                           const std::string& token) {
  Table table = empty_table();
  const auto next = fetch_pages(client, kEntries, query, max_rows, token, [&](const Json& entries) {
    for (const Json& entry : entries) table.add(entry_row(entry));
  });
  if (!next) return std::unexpected(next.error());
  if (table.empty()) {
    console.note("no such entries");
    return {};
  }
  console.out(table.render(output.width(console)));
  if (!next->empty()) {
    console.note(
        fmt::format("there are more; go on with --page-token {}, or ask for more at once "
                    "with --limit",
                    *next));
  }
  return {};
}

}  // namespace

int run_audit_list(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Options o;
  Arguments arguments(text);
  arguments.option("--user", o.user, "NAME", "only calls by this user")
      .option("--for", o.owner, "NAME", "only calls that concern jobs of this user")
      .option("--job", o.job, "ID", "only calls that concern this job or array")
      .option("--action,--call", o.action, "ACTION",
              "submit, cancel, kill, hold, release, requeue, requeue-and-hold, update, drain, "
              "offline, online, reserve, change-reservation, unreserve, configure, exec, attach, "
              "port-forward, top, signal, create-token, revoke-token, "
              "set-team, remove-team")
      .option("--since", o.since, "TIME", "only entries since then: 2h, 7d, or a time")
      .option("--until", o.until, "TIME", "up to then")
      .option("--outcome", o.outcome, "OUTCOME", "ok, refused, or a code: permission-denied")
      .option("--limit", o.limit, "N",
              fmt::format(
                  "maximum number, the newest first (default: {}; all with -o json, yaml or name)",
                  kRowsOfTable))
      .option("--page-token", o.page_token, "TOKEN", "the next_page of the page before")
      .flag("--json-lines", o.json_lines,
            "each entry as a JSON object in a line of its own, for log collectors; all unless "
            "--limit")
      .output(o.output, {"entries", "id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (o.json_lines) {
    if (o.output.format != Output::Format::kTable) {
      return usage_error(console, "--json-lines and -o or --json exclude each other", text.name);
    }
    o.output.format = Output::Format::kJson;
    o.output.in_lines = true;
  }
  std::uint64_t limit = o.output.is_document() ? UINT64_MAX : kRowsOfTable;
  if (o.limit) {
    const auto asked = base::parse_count(*o.limit, 1, UINT32_MAX);
    if (!asked) return usage_error(console, "--limit: " + asked.error().message, text.name);
    limit = *asked;
  }
  const auto query = query_of(o, console.process_environment().now());
  if (!query) {
    return usage_error(console, fmt::format("{}: {}", query.error().field, query.error().message),
                       text.name);
  }
  const std::string token = o.page_token.value_or("");
  return show(console, o.output, [&](Console& shown, int) {
    return o.output.is_document()
               ? print_pages(shown, *client, o.output, kEntries, *query, limit, token)
               : print_entries(shown, *client, o.output, *query, limit, token);
  });
}

}  // namespace gpu_platform::cli
