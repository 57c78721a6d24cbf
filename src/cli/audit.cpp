#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/letters.h"
#include "base/parse.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/message_text.h"
#include "cli/pages.h"
#include "cli/repeat.h"
#include "cli/table.h"
#include "cli/text.h"
#include "gpu_platform/v1/audit.pb.h"

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
std::string some_of(const TextList& names, std::uint64_t count) {
  constexpr int kShown = 3;
  const int shown = std::min(names.size(), kShown);
  std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  const auto told = static_cast<std::uint64_t>(shown);
  if (count > told) text += fmt::format(" and {} more", count - told);
  return text;
}

std::string what_of(const v1::AuditEntry& entry) {
  std::vector<std::string> parts;
  if (!entry.jobs().empty()) parts.push_back("job " + some_of(entry.jobs(), entry.job_count()));
  if (!entry.gpus().empty()) {
    parts.push_back(some_of(entry.gpus(), entry.gpu_count()));
  } else if (!entry.target().empty()) {
    parts.push_back(entry.target());
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string outcome_of(const v1::AuditEntry& entry) {
  if (entry.outcome() == v1::AUDIT_OUTCOME_OK) return "ok";
  return fmt::format("{}{}: {}", entry.code(),
                     if_known(entry.calls() > 1, entry.calls(), " ({} calls, the last)"),
                     entry.reason());
}

std::string origin_of(const v1::AuditEntry& entry) {
  std::string door = base::to_lower(name_at(entry, v1::AuditEntry::kDoorFieldNumber));
  for (char& c : door) c = c == '_' ? ' ' : c;
  if (!entry.credential_name().empty()) {
    const std::string kind = name_at(entry, v1::AuditEntry::kCredentialFieldNumber);
    door += fmt::format(", {} {}", base::to_lower(kind), entry.credential_name());
  } else if (!entry.token().empty()) {
    door += fmt::format(", token {}", entry.token());
  }
  return entry.has_pid() ? fmt::format("{}, pid {}", door, entry.pid()) : door;
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

std::vector<std::string> entry_row(const v1::AuditEntry& entry) {
  const auto at = time_of(entry.at());
  return {at ? local_time(*at) : std::string(),
          entry.user(),
          base::to_lower(name_at(entry, v1::AuditEntry::kActionFieldNumber)),
          what_of(entry),
          entry.owner(),
          outcome_of(entry),
          origin_of(entry)};
}

Called<void> print_entries(Console& console, Client& client, const Output& output,
                           const std::string& query, std::uint64_t max_rows,
                           const std::string& token) {
  Table table = empty_table();
  const auto next = fetch_messages<v1::ListAuditResponse>(
      client, kEntries, query, max_rows, token, [&](const v1::ListAuditResponse& page) {
        for (const v1::AuditEntry& entry : page.entries()) table.add(entry_row(entry));
        return page.entries_size();
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
      .option("--since", o.since, "TIME",
              "only entries after this time: 2h ago (2h), 7d, or a time")
      .option("--until", o.until, "TIME", "only entries before this time")
      .option("--outcome", o.outcome, "OUTCOME", "ok, refused, or a code: permission-denied")
      .option("--limit", o.limit, "N",
              fmt::format(
                  "maximum number, the newest first (default: {}; all with -o json, yaml or name)",
                  kRowsOfTable))
      .option("--page-token", o.page_token, "TOKEN",
              "continue a list: the next_page of the previous answer")
      .flag("--json-lines", o.json_lines,
            "print each entry as a JSON object on its own line, for log collectors; all of them "
            "unless --limit is given")
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
