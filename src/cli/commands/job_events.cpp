#include <algorithm>

#include <fmt/format.h>

#include "base/percent.h"
#include "base/utc.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/jobs/job_history.h"
#include "cli/jobs/job_start.h"
#include "cli/text/job_names.h"
#include "cli/text/job_text.h"
#include "cli/text/json_view.h"
#include "cli/text/message_text.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "cli/words/pages.h"

// `jobs events`.

namespace gpu_platform::cli {

namespace {

constexpr PagedList kAuditOfJob{"/v1/audit", "entries", 1'000};
// So many entries of the audit trail, the newest, are looked through.
constexpr std::uint64_t kMaxCalls = 10'000;

// A caller who may see the job may see none of the calls; then the job alone tells.
std::vector<v1::AuditEntry> calls_about(Console& console, Client& client, const v1::Job& job) {
  std::vector<v1::AuditEntry> entries;
  std::string query;
  http::append_query(query, "job", shown_id(job));
  const auto next = fetch_messages<v1::ListAuditResponse>(
      client, kAuditOfJob, query, kMaxCalls, "", [&](const v1::ListAuditResponse& page) {
        entries.insert(entries.end(), page.entries().begin(), page.entries().end());
        return page.entries_size();
      });
  const bool sees_none = !next && next.error().kind == Failure::Kind::kProblem &&
                         next.error().code == base::ErrorCode::kNotFound;
  if (!next && !sees_none) {
    console.warning(fmt::format("calls about the job are not shown: {}", next.error().message));
  }
  return entries;
}

Json json_of(const v1::Job& job, const std::vector<HistoryEntry>& history) {
  Json list = Json::array();
  for (const HistoryEntry& entry : history) {
    Json one;
    std::string at;
    base::append_rfc3339(at, entry.at);
    one["at"] = at;
    one["event"] = entry.event;
    one["attempt"] = entry.attempt ? Json(*entry.attempt) : Json();
    one["by"] = entry.by.empty() ? Json() : Json(entry.by);
    one["detail"] = entry.detail.empty() ? Json() : Json(entry.detail);
    list.push_back(std::move(one));
  }
  return Json{{"job", job.id()}, {"state", state_name(job)}, {"events", std::move(list)}};
}

void print_history(Console& console, const Output& output, const v1::Job& job,
                   const std::vector<HistoryEntry>& history) {
  Table table({{"WHEN", Column::Align::kLeft},
               {"EVENT"},
               {"ATTEMPT", Column::Align::kRight, std::nullopt, 1},
               {"BY", Column::Align::kLeft, 6},
               {"DETAIL", Column::Align::kLeft, 16}});
  for (const HistoryEntry& entry : history) {
    table.add({local_time(entry.at), entry.event,
               entry.attempt ? fmt::format("{}", *entry.attempt) : "", entry.by, entry.detail});
  }
  console.out(table.render(output.style(console)));
  if (waits_for_start(job)) console.note(waiting_line(job));
}

}  // namespace

int run_jobs_events(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> ids;
  Output output;
  Arguments arguments(text);
  arguments.words("ID", ids, 1, 1, "the job; of an array one member: 15_3").output(output, {});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  auto job = client->ask<v1::Job>("/v1/jobs/" + base::percent_encoded(ids.front()), "a job");
  if (!job) return report(console, job.error(), output.wants_documents());
  if (job->array_id() == ids.front()) {
    console.note(
        fmt::format("job {} is an array: these are the events of {}", ids.front(), shown_id(*job)));
  }
  if (!output.is_document()) name_other_jobs(*client, *job);
  const auto history =
      history_of(*job, calls_about(console, *client, *job), console.process_environment().now());
  if (output.is_document())
    return print_document(console, output, json_text(json_of(*job, history)));
  print_history(console, output, *job, history);
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
