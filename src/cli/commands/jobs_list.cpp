#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "cli/text/job_text.h"
#include "cli/text/message_text.h"
#include "cli/text/request_text.h"
#include "cli/text/share_text.h"
#include "cli/text/text.h"
#include "cli/words/input.h"
#include "cli/words/list_command.h"
#include "http/http.h"

// `jobs list`.

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;
using Kind = ListFilter::Kind;
using JobColumn = ListColumn<v1::Job>;
using Timestamp = google::protobuf::Timestamp;

constexpr PagedList kJobs{"/v1/jobs", "jobs", 10'000};

std::string time_cell(const Timestamp& field) {
  const auto at = time_of(field);
  return at ? short_time(*at) : std::string();
}

double rank_of(const Timestamp& field) {
  const auto at = time_of(field);
  return at ? static_cast<double>(at->unix_ns()) : 0;
}

double rank_of(std::optional<base::Duration> duration) {
  return duration ? static_cast<double>(duration->value()) : -1;
}

double id_rank(const v1::Job& job, base::Instant) {
  return static_cast<double>(std::strtoull(job.id().c_str(), nullptr, 10));
}

std::string age_cell(const v1::Job& job, base::Instant now) {
  const auto at = time_of(job.submitted_at());
  return at ? age(now - *at) : std::string();
}

// The columns that need what the jobs did on their GPUs, which the daemon gives if it is asked.
constexpr std::array<std::string_view, 2> kUseColumns = {"gpu-utilization", "gpu-memory"};

std::string percent_cell(bool is_known, double percent) {
  return is_known ? fmt::format("{:.0f}%", percent) : std::string();
}

// By importance: a narrow terminal leaves out those with the highest number first.
std::vector<JobColumn> job_columns() {
  std::vector<JobColumn> columns = {
      {.key = "id",
       .column = {"ID", Align::kRight},
       .cell = [](const v1::Job& job, base::Instant) { return shown_id(job); },
       .rank = id_rank},
      {.key = "name",
       .column = {.title = "NAME", .cut_to = 12},
       .cell = [](const v1::Job& job, base::Instant) { return job.spec().name(); }},
      {.key = "user",
       .column = {.title = "USER", .cut_to = 6},
       .cell = [](const v1::Job& job, base::Instant) { return job.spec().user(); }},
      {.key = "state",
       .column = {.title = "STATE", .is_state = true},
       .cell = [](const v1::Job& job, base::Instant) { return state_name(job); }},
      {.key = "gpus",
       .column = {"GPUS", Align::kRight},
       .cell = [](const v1::Job& job,
                  base::Instant) { return share_text(gpus_in_all(job.spec())); },
       .rank = [](const v1::Job& job, base::Instant) { return gpus_in_all(job.spec()); }},
      {.key = "priority",
       .column = {.title = "PRIORITY", .expendable = 7},
       .cell = [](const v1::Job& job, base::Instant) { return job.spec().priority(); },
       .rank = [](const v1::Job& job,
                  base::Instant) { return static_cast<double>(job.spec().priority_number()); }},
      {.key = "submitted",
       .column = {.title = "SUBMITTED", .expendable = 4},
       .cell = [](const v1::Job& job, base::Instant) { return time_cell(job.submitted_at()); },
       .rank = [](const v1::Job& job, base::Instant) { return rank_of(job.submitted_at()); }},
      {.key = "age",
       .column = {.title = "AGE", .align = Align::kRight, .instead_of = "SUBMITTED"},
       .cell = age_cell,
       .rank = [](const v1::Job& job, base::Instant) { return -rank_of(job.submitted_at()); }},
      {.key = "started",
       .column = {.title = "STARTED", .expendable = 5},
       .cell = [](const v1::Job& job, base::Instant) { return time_cell(job.started_at()); },
       .rank = [](const v1::Job& job, base::Instant) { return rank_of(job.started_at()); }},
      {.key = "ended",
       .column = {.title = "ENDED", .expendable = 6},
       .cell = [](const v1::Job& job, base::Instant) { return time_cell(job.ended_at()); },
       .rank = [](const v1::Job& job, base::Instant) { return rank_of(job.ended_at()); },
       .is_left_out_if_empty = true},
      {.key = "waited",
       .column = {.title = "WAITED", .align = Align::kRight, .expendable = 8},
       .cell = [](const v1::Job& job, base::Instant now) { return waited(job, now); },
       .rank = [](const v1::Job& job,
                  base::Instant now) { return rank_of(waiting_time(job, now)); }},
      {.key = "ran",
       .column = {"RAN", Align::kRight},
       .cell = [](const v1::Job& job, base::Instant now) { return ran(job, now); },
       .rank = [](const v1::Job& job,
                  base::Instant now) { return rank_of(running_time(job, now)); }}};
  columns.push_back({.key = std::string(kUseColumns[0]),
                     .column = {.title = "GPU UTIL", .align = Align::kRight, .expendable = 3},
                     .cell =
                         [](const v1::Job& job, base::Instant) {
                           return percent_cell(job.gpu_use().has_utilization_percent(),
                                               job.gpu_use().utilization_percent());
                         },
                     .rank = [](const v1::Job& job,
                                base::Instant) { return job.gpu_use().utilization_percent(); },
                     .is_wide = true,
                     .is_left_out_if_empty = true});
  columns.push_back(
      {.key = std::string(kUseColumns[1]),
       .column = {.title = "GPU MEM", .align = Align::kRight, .expendable = 3},
       .cell =
           [](const v1::Job& job, base::Instant) {
             return percent_cell(job.gpu_use().has_memory_percent(),
                                 job.gpu_use().memory_percent());
           },
       .rank = [](const v1::Job& job, base::Instant) { return job.gpu_use().memory_percent(); },
       .is_wide = true,
       .is_left_out_if_empty = true});
  for (SpecColumn& spec : spec_columns()) {
    columns.push_back({.key = as_word(spec.title),
                       .column = {spec.title},
                       .cell = std::move(spec.cell),
                       .is_wide = true});
  }
  columns.push_back(
      {.key = "reason",
       .column = {.title = "PLACE OR REASON", .cut_to = 28, .wraps = true},
       .cell = [](const v1::Job& job, base::Instant) { return place_or_reason(job); }});
  return columns;
}

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

bool shows_use(const ListOptions& options) {
  const std::string named = options.columns.value_or("") + "," + options.sort.value_or("");
  return options.output.is_wide() || std::ranges::any_of(kUseColumns, [&](std::string_view column) {
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
