#include <algorithm>

#include <fmt/format.h>

#include "base/letters.h"
#include "base/parse.h"
#include "base/percent.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/job_end.h"
#include "cli/job_text.h"
#include "cli/pages.h"
#include "cli/plan_text.h"
#include "cli/repeat.h"
#include "cli/table.h"
#include "cli/text.h"
#include "client/follow.h"
#include "client/members.h"

namespace gpu_platform::cli {

namespace {

constexpr PagedList kJobs{"/v1/jobs", "jobs", 10'000};

struct ListOptions {
  bool all = false;
  std::optional<std::string> user, team, name, since, limit, page_token;
  std::vector<std::string> states, labels;
  Output output;
};

base::Result<std::string> list_query(const ListOptions& o, base::Instant now) {
  std::string query;
  const std::pair<std::string_view, const std::optional<std::string>*> texts[] = {
      {"user", &o.user}, {"team", &o.team}, {"name", &o.name}};
  for (const auto& [key, value] : texts) {
    if (value->has_value()) http::append_query(query, key, **value);
  }
  for (const std::string& state : words_of_lists(o.states)) {
    http::append_query(query, "state", base::to_upper(state));
  }
  for (const std::string& label : o.labels) http::append_query(query, "label", label);
  if (o.since.has_value()) {
    TRY_ASSIGN(const std::string since, past_time("--since", *o.since, now));
    http::append_query(query, "since", since);
  }
  if (o.all) http::append_query(query, "all", "true");
  return query;
}

Called<void> print_jobs(Console& console, Client& client, const Output& output,
                        const std::string& query, std::uint64_t most, const std::string& token) {
  const base::Instant now = console.process_environment().now();
  Table table = job_table(output.is_wide());
  const auto next = fetch_messages<v1::ListJobsResponse>(
      client, kJobs, query, most, token, [&](const v1::ListJobsResponse& page) {
        for (const v1::Job& job : page.jobs()) table.add(job_row(job, now, output.is_wide()));
        return page.jobs_size();
      });
  if (!next) return std::unexpected(next.error());
  if (table.empty()) {
    console.note("no such jobs");
    return {};
  }
  console.out(table.render(output.width(console)));
  if (!next->empty())
    console.note(fmt::format("there are more; go on with --page-token {}", *next));
  return {};
}

}  // namespace

int run_jobs_list(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  ListOptions o;
  Arguments arguments(text);
  arguments.flag("--all", o.all, "also finished jobs, of all users that you may see")
      .option("--user", o.user, "NAME", "only jobs of this user")
      .option("--team", o.team, "NAME", "only jobs of this team")
      .many("--state", o.states, "STATE[,STATE]", "only jobs in these states")
      .option("--name", o.name, "NAME", "only jobs of this name")
      .many("--label", o.labels, "KEY=VALUE", "only jobs with this label; may be repeated")
      .option("--since", o.since, "TIME", "leave out jobs that ended before: 2h, 7d, or a time")
      .option("--limit", o.limit, "N", "maximum number of jobs (default: all)")
      .option("--page-token", o.page_token, "TOKEN",
              "continue a list: the next_page of the previous answer");
  arguments.output_and_watch(o.output, {"jobs", "id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  std::uint64_t most = UINT64_MAX;
  if (o.limit.has_value()) {
    const auto limit = base::parse_count(*o.limit, 1, UINT32_MAX);
    if (!limit) return usage_error(console, "--limit: " + limit.error().message, text.name);
    most = *limit;
  }
  const auto query = list_query(o, console.process_environment().now());
  if (!query) {
    return usage_error(console, fmt::format("{}: {}", query.error().field, query.error().message),
                       text.name);
  }
  const std::string token = o.page_token.value_or("");
  return show(console, o.output, [&](Console& shown, int) {
    return o.output.is_document()
               ? print_pages(shown, *client, o.output, kJobs, *query, most, token)
               : print_jobs(shown, *client, o.output, *query, most, token);
  });
}

namespace {

// Prints what the daemon says of one job: its document, or the page that is made of it.
template <class Message>
int show_job(const CommandText& text, Invocation& invocation, std::string_view resource,
             NamesPlace names, std::string (*page)(const Message&, base::Instant)) {
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
  const auto message = client::message_of<Message>(*body);
  if (output.is_document() || !message) return print_document(console, output, *body);
  console.out(page(*message, console.process_environment().now()));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace

int run_jobs_describe(const CommandText& text, Invocation& invocation) {
  return show_job<v1::Job>(text, invocation, "", {"", "id"}, job_page);
}

int run_jobs_explain(const CommandText& text, Invocation& invocation) {
  return show_job<v1::Explanation>(text, invocation, "/explanation?thorough=true", {"", "job/id"},
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
    const auto ended = wait_for_end(console, *client, id, left, none);
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
