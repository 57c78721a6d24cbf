#include <algorithm>

#include <fmt/format.h>

#include "cli/commands/job_columns.h"
#include "cli/words/input.h"
#include "cli/words/list_command.h"
#include "http/http.h"

// `jobs list`.

namespace gpu_platform::cli {

namespace {

using Kind = ListFilter::Kind;

constexpr PagedList kJobs{"/v1/jobs", "jobs", 10'000};

std::vector<ListFilter> job_filters() {
  return {
      {"--user", "user", Kind::kText, "NAME", "only jobs of this user"},
      {"--team", "team", Kind::kText, "NAME", "only jobs of this team"},
      {"--name", "", Kind::kText, "PATTERN", "only jobs with a matching name: 'train-*'"},
      {"--state", "state", Kind::kConstants, "STATE[,STATE]", "only jobs in these states"},
      {"--label", "label", Kind::kTexts, "KEY=VALUE", "only jobs with this label; may be repeated"},
      {"--node", "node", Kind::kText, "NAME", "only jobs that run or ran on this node"},
      {"--since", "since", Kind::kPastTime, "TIME",
       "leave out jobs that ended before: 2h, 7d, yesterday, monday, or a time"},
      {"--until", "until", Kind::kPastTime, "TIME", "leave out jobs that were submitted later"},
      {"--ended", "ended", Kind::kFlag, "",
       "also ended jobs; --since, --until and --node include them"},
      {"--all-users", "", Kind::kFlag, "", "the jobs of all users that you may see"},
      {"--all", "all", Kind::kFlag, "", "short for --ended --all-users"},
  };
}

// The API's `all` has ended jobs, too, unless states are given.
void append_all_users(std::string& query, bool has_states_or_ended) {
  http::append_query(query, "all", "true");
  if (has_states_or_ended) return;
  for (const std::string_view state :
       {"HELD", "PENDING", "QUEUED", "STARTING", "RUNNING", "STOPPING", "SUSPENDED", "PREEMPTED"}) {
    http::append_query(query, "state", state);
  }
}

std::string named_columns(const ListOptions& options) {
  return options.columns.value_or("") + "," + options.sort.value_or("");
}

bool shows_use(const ListOptions& options) {
  const std::string named = named_columns(options);
  return options.output.is_wide() ||
         std::ranges::any_of(kJobUseColumns, [&](std::string_view column) {
           return named.find(column) != std::string::npos;
         });
}

// A name without a wildcard is one name, which the daemon finds faster than a pattern.
base::Status complete_jobs(ListOptions& options, std::string& query) {
  if (options.has("--name")) {
    const std::string name = options.value_of("--name");
    const bool is_pattern = name.find_first_of("*?") != std::string::npos;
    http::append_query(query, is_pattern ? "name_pattern" : "name", name);
  }
  if (shows_use(options)) http::append_query(query, "gpu_use", "true");
  if (named_columns(options).find(kJobCostColumn) != std::string::npos) {
    http::append_query(query, "cost", "true");
  }
  const bool is_about_the_past =
      options.has("--since") || options.has("--until") || options.has("--node");
  const bool is_said = options.has("--all") || options.has("--ended") || options.has("--state");
  if (options.has("--all-users") && !options.has("--all")) {
    append_all_users(query, is_said || is_about_the_past);
  } else if (is_about_the_past && !is_said) {
    http::append_query(query, "ended", "true");
  }
  return {};
}

bool is_of_caller(const ListOptions& options) {
  return !options.has("--all") && !options.has("--all-users") && !options.has("--user") &&
         !options.has("--team");
}

// "3 ended in the last hour": a person who has no job looks for the one that has just failed.
std::string tell_nothing(const ListOptions& options, Client& client, base::Instant now) {
  if (!options.given.empty()) return "no jobs match";
  std::string query = "ended=true&fields=jobs.id";
  http::append_query(query, "since", past_time("--since", "1h", now).value());
  const auto ended = client.ask<v1::ListJobsResponse>("/v1/jobs?" + query, "a list");
  const std::string nothing = "you have no waiting or running jobs";
  if (!ended || ended->jobs().empty()) return nothing;
  return fmt::format("{}; {}{} ended in the last hour: gpu-platform jobs list --all", nothing,
                     ended->next_page().empty() ? "" : "more than ", ended->jobs_size());
}

}  // namespace

int run_jobs_list(const CommandText& text, Invocation& invocation) {
  const List<v1::Job> list{.pages = kJobs,
                           .names = {"jobs", "id"},
                           .filters = job_filters(),
                           .columns = job_columns(),
                           .user_column = "user",
                           .complete = complete_jobs,
                           .is_of_caller = is_of_caller,
                           .fold = array_fold,
                           .tell_nothing = tell_nothing};
  return ListCommand(list, &v1::ListJobsResponse::jobs).run(text, invocation);
}

}  // namespace gpu_platform::cli
