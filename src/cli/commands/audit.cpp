#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/letters.h"
#include "cli/text/message_text.h"
#include "cli/text/text.h"
#include "cli/words/list_command.h"
#include "gpu_platform/v1/audit.pb.h"
#include "http/http.h"

// The audit trail.

namespace gpu_platform::cli {

namespace {

constexpr PagedList kEntries{"/v1/audit", "entries", 1'000};
// A person does not look through more.
constexpr std::uint64_t kRowsOfTable = 100;

constexpr std::string_view kActionOption = "--action,--call";
// The journal and the API have the former name of `jobs raise`.
constexpr std::string_view kRaise = "RAISE";
constexpr std::string_view kStoredRaise = "TOP";

using Kind = ListFilter::Kind;
using EntryColumn = ListColumn<v1::AuditEntry>;

std::vector<ListFilter> entry_filters() {
  return {
      {"--user", "user", Kind::kText, "NAME", "only calls by this user"},
      {"--for", "owner", Kind::kText, "NAME", "only calls that concern jobs of this user"},
      {"--job", "job", Kind::kText, "ID", "only calls that concern this job or array"},
      {std::string(kActionOption), "", Kind::kText, "ACTION",
       "submit, cancel, kill, hold, release, requeue, requeue-and-hold, update, drain, "
       "offline, online, reserve, change-reservation, unreserve, configure, exec, attach, "
       "port-forward, raise, signal, create-token, revoke-token, set-team, remove-team, silence, "
       "end-silence, acknowledge, test-channel, stop-idle"},
      {"--since", "since", Kind::kPastTime, "TIME",
       "only entries after this time: 2h ago (2h), 7d, or a time"},
      {"--until", "until", Kind::kPastTime, "TIME", "only entries before this time"},
      {"--outcome", "", Kind::kText, "OUTCOME", "ok, refused, or a code: permission-denied"},
      {"--json-lines", "", Kind::kFlag, "",
       "print each entry as a JSON object on its own line, for log collectors; all unless --limit"},
  };
}

base::Status complete_entries(ListOptions& options, std::string& query) {
  if (options.has(kActionOption)) {
    const std::string action = as_constant(options.value_of(kActionOption));
    http::append_query(query, "action", action == kRaise ? kStoredRaise : action);
  }
  if (options.has("--outcome")) {
    const std::string outcome = as_constant(options.value_of("--outcome"));
    const bool is_code = outcome != "OK" && outcome != "REFUSED";
    http::append_query(query, is_code ? "code" : "outcome", outcome);
  }
  if (!options.has("--json-lines")) return {};
  if (options.output.format != Output::Format::kTable) {
    return base::invalid("--json-lines", "it and -o or --json exclude each other");
  }
  options.output.format = Output::Format::kJson;
  options.output.in_lines = true;
  return {};
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

// Members of arrays as "15_5".
TextList named_jobs(const v1::AuditEntry& entry) {
  TextList jobs = entry.jobs();
  for (std::string& job : jobs) {
    const auto name = entry.names().find(job);
    if (name != entry.names().end()) job = name->second;
  }
  return jobs;
}

std::string what_of(const v1::AuditEntry& entry) {
  std::vector<std::string> parts;
  if (!entry.jobs().empty())
    parts.push_back("job " + some_of(named_jobs(entry), entry.job_count()));
  if (!entry.gpus().empty()) {
    parts.push_back(some_of(entry.gpus(), entry.gpu_count()));
  } else if (!entry.target().empty()) {
    parts.push_back(entry.target());
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string action_of(const v1::AuditEntry& entry) {
  const std::string action = name_at(entry, v1::AuditEntry::kActionFieldNumber);
  return base::to_lower(action == kStoredRaise ? kRaise : action);
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

// To the second; all entries are in one time zone.
std::string when_of(const v1::AuditEntry& entry) {
  constexpr std::size_t kWithoutZone = sizeof "2026-11-21 08:30:15" - 1;
  const auto at = time_of(entry.at());
  return at ? local_time(*at).substr(0, kWithoutZone) : std::string();
}

std::vector<EntryColumn> entry_columns() {
  return {{.key = "when",
           .column = {.title = "WHEN"},
           .cell = [](const v1::AuditEntry& entry, base::Instant) { return when_of(entry); }},
          {.key = "user",
           .column = {.title = "USER", .cut_to = 6},
           .cell = [](const v1::AuditEntry& entry, base::Instant) { return entry.user(); }},
          {.key = "action",
           .column = {.title = "ACTION"},
           .cell = [](const v1::AuditEntry& entry, base::Instant) { return action_of(entry); }},
          {.key = "what",
           .column = {.title = "WHAT", .cut_to = 12, .wraps = true},
           .cell = [](const v1::AuditEntry& entry, base::Instant) { return what_of(entry); }},
          {.key = "for",
           .column = {.title = "FOR", .cut_to = 6, .expendable = 2},
           .cell = [](const v1::AuditEntry& entry, base::Instant) { return entry.owner(); }},
          {.key = "outcome",
           .column = {.title = "OUTCOME", .cut_to = 16, .wraps = true},
           .cell = [](const v1::AuditEntry& entry, base::Instant) { return outcome_of(entry); }},
          {.key = "from",
           .column = {.title = "FROM", .cut_to = 8, .expendable = 1},
           .cell = [](const v1::AuditEntry& entry, base::Instant) { return origin_of(entry); }}};
}

}  // namespace

int run_audit_list(const CommandText& text, Invocation& invocation) {
  const List<v1::AuditEntry> list{.pages = kEntries,
                                  .names = {"entries", "id"},
                                  .filters = entry_filters(),
                                  .columns = entry_columns(),
                                  .rows = kRowsOfTable,
                                  .nothing = "no such entries",
                                  .complete = complete_entries};
  return ListCommand(list, &v1::ListAuditResponse::entries).run(text, invocation);
}

}  // namespace gpu_platform::cli
