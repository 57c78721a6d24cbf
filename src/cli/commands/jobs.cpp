#include <algorithm>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/percent.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/jobs/job_end.h"
#include "cli/jobs/job_progress.h"
#include "cli/text/end_advice.h"
#include "cli/text/job_names.h"
#include "cli/text/job_text.h"
#include "cli/text/plan_text.h"
#include "cli/text/text.h"
#include "client/follow.h"
#include "client/members.h"

namespace gpu_platform::cli {

namespace {

// Prints what the daemon says of one job: its document, or the page that is made of it.
template <class Message>
int show_job(const CommandText& text, Invocation& invocation, std::string_view resource,
             NamesPlace names, v1::Job& (*job_of)(Message&),
             std::string (*page)(const Message&, const PageStyle&)) {
  Console& console = invocation.console;
  std::vector<std::string> ids;
  Output output;
  Arguments arguments(text);
  arguments.words("ID", ids, 1, 1, "the job").output(output, names);
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const auto body =
      client->get(fmt::format("/v1/jobs/{}{}", base::percent_encoded(ids.front()), resource));
  if (!body) return report(console, body.error(), output.wants_documents());
  auto message = client::message_of<Message>(*body);
  if (output.is_document() || !message) return print_document(console, output, *body);
  name_other_jobs(*client, job_of(*message));
  console.out(page(*message, output.page_style(console)));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace

int run_jobs_describe(const CommandText& text, Invocation& invocation) {
  return show_job<v1::Job>(
      text, invocation, "", {"", "id"}, [](v1::Job& job) -> v1::Job& { return job; }, job_page);
}

int run_jobs_explain(const CommandText& text, Invocation& invocation) {
  return show_job<v1::Explanation>(
      text, invocation, "/explanation?thorough=true", {"", "job/id"},
      [](v1::Explanation& explanation) -> v1::Job& { return *explanation.mutable_job(); },
      explanation_page);
}

int run_jobs_wait(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> ids;
  std::optional<std::string> timeout;
  Output output;
  Arguments arguments(text);
  arguments.words("ID", ids, 1, SIZE_MAX, "jobs to wait for")
      .option("--timeout", timeout, "DURATION", "give up after this: 90s 15m 2h (exit code 124)")
      .output(output, {"", "id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  std::optional<base::Duration> at_most;
  if (timeout.has_value()) {
    const auto duration = base::parse_duration(*timeout);
    if (!duration) return usage_error(console, "--timeout: " + duration.error().message, text.name);
    at_most = *duration;
  }
  const auto& steady = console.process_environment().steady;
  const base::Instant began = steady();
  client::Interrupts none;
  int result = kOk;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string id = ids[i];
    std::optional<base::Duration> left;
    if (at_most.has_value()) left = std::max(*at_most - (steady() - began), base::Duration());
    const auto ended = wait_for_end(console, *client, id, left, none,
                                    progress_teller(console, output.is_document()));
    if (!ended) return report(console, ended.error(), output.wants_documents());
    if (!ended->has_value()) {
      console.note(fmt::format("job {} has not ended yet", id));
      return kTimedOut;
    }
    const v1::Job& job = (*ended)->job;
    if (output.is_document()) {
      print_next_document(console, output, (*ended)->document);
    } else {
      console.note(describe_end(job));
      if (const std::string advice = advice_on_end(job); !advice.empty()) console.note(advice);
    }
    if (job.state() != v1::JOB_STATE_COMPLETED) result = kFailure;
    // The first of an array stood for all of them.
    const std::vector<std::string> members = client::members_in(job, id);
    ids.insert(ids.begin() + static_cast<std::ptrdiff_t>(i) + 1, members.begin() + 1,
               members.end());
  }
  return result;
}

}  // namespace gpu_platform::cli
