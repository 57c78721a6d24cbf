#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/percent.h"
#include "cli/commands/job_columns.h"
#include "cli/text/job_text.h"
#include "cli/text/message_text.h"
#include "cli/text/request_text.h"
#include "cli/text/text.h"
#include "cli/text/use_text.h"
#include "cli/words/list_command.h"
#include "client/follow.h"
#include "http/http.h"

// `jobs efficiency`: how much jobs used of what they held, of one job or as a list.

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;
using Kind = ListFilter::Kind;

constexpr PagedList kJobPages{"/v1/jobs", "jobs", 10'000};
constexpr std::size_t kKeyWidth = 14;

JobColumn percent_column(std::string key, std::string title, int expendable,
                         std::string (*cell)(const v1::Job&),
                         double (*rank)(const v1::Job&, base::Instant)) {
  return {.key = std::move(key),
          .column = {.title = std::move(title), .align = Align::kRight, .expendable = expendable},
          .cell = [cell](const v1::Job& job, base::Instant) { return cell(job); },
          .rank = rank};
}

std::vector<JobColumn> efficiency_columns() {
  std::vector<JobColumn> columns = job_columns({"id", "name", "user", "state", "ran", "gpus"});
  columns.insert(
      columns.end(),
      {
          percent_column(
              "gpu", "GPU", 0,
              [](const v1::Job& job) {
                return percent_cell(job.gpu_use().has_utilization_percent(),
                                    job.gpu_use().utilization_percent());
              },
              [](const v1::Job& job, base::Instant) {
                return job.gpu_use().utilization_percent();
              }),
          percent_column(
              "gpu-memory", "GPU MEM", 0,
              [](const v1::Job& job) {
                return percent_cell(job.gpu_use().has_memory_percent(),
                                    job.gpu_use().memory_percent());
              },
              [](const v1::Job& job, base::Instant) { return job.gpu_use().memory_percent(); }),
          percent_column(
              "cpu", "CPU", 2,
              [](const v1::Job& job) {
                return percent_cell(job.efficiency().has_cpu(), job.efficiency().cpu() * 100);
              },
              [](const v1::Job& job, base::Instant) { return job.efficiency().cpu(); }),
          percent_column(
              "memory", "MEMORY", 1,
              [](const v1::Job& job) {
                return percent_cell(job.efficiency().has_memory(), job.efficiency().memory() * 100);
              },
              [](const v1::Job& job, base::Instant) { return job.efficiency().memory(); }),
          percent_column(
              "time", "TIME", 3,
              [](const v1::Job& job) {
                return percent_cell(job.efficiency().has_time(), job.efficiency().time() * 100);
              },
              [](const v1::Job& job, base::Instant) { return job.efficiency().time(); }),
          percent_column(
              "energy", "ENERGY", 4,
              [](const v1::Job& job) {
                return job.gpu_use().has_energy_joules()
                           ? energy_text(job.gpu_use().energy_joules())
                           : std::string();
              },
              [](const v1::Job& job, base::Instant) { return job.gpu_use().energy_joules(); }),
      });
  return columns;
}

std::vector<ListFilter> efficiency_filters() {
  return {
      {"--user", "user", Kind::kText, "NAME", "only jobs of this user"},
      {"--team", "team", Kind::kText, "NAME", "only jobs of this team"},
      {"--state", "state", Kind::kConstants, "STATE[,STATE]", "only jobs in these states"},
      {"--label", "label", Kind::kTexts, "KEY=VALUE", "only jobs with this label; may be repeated"},
      {"--node", "node", Kind::kText, "NAME", "only jobs that run or ran on this node"},
      {"--since", "since", Kind::kPastTime, "TIME",
       "leave out jobs that ended before: 2h, 7d, yesterday, monday, or a time"},
      {"--until", "until", Kind::kPastTime, "TIME", "leave out jobs that were submitted later"},
      {"--all-users", "all", Kind::kFlag, "", "the jobs of all users that you may see"},
  };
}

// A job that waits has used nothing.
base::Status complete_query(ListOptions& options, std::string& query) {
  http::append_query(query, "gpu_use", "true");
  if (!options.has("--state")) {
    for (const std::string_view state :
         {"RUNNING", "STOPPING", "COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT"}) {
      http::append_query(query, "state", state);
    }
  }
  return {};
}

// "87% of 2 GPUs".
std::string part_of(bool is_known, double percent, const std::string& whole) {
  return is_known ? fmt::format("{:.0f}% of {}", percent, whole) : std::string();
}

std::string efficiency_page(const v1::Job& job, base::Instant now) {
  const v1::JobGpuUse& gpus = job.gpu_use();
  const v1::Efficiency& efficiency = job.efficiency();
  const bool has_memory = gpus.has_memory_percent();
  const auto bytes = [](std::uint64_t value) {
    return readable_size(static_cast<std::int64_t>(value));
  };
  const std::vector<std::pair<std::string_view, std::string>> lines = {
      {"Job:", fmt::format("{} {}", shown_id(job), job.spec().name())},
      {"User:", job.spec().user()},
      {"State:", state_name(job)},
      {"Ran:", ran(job, now)},
      {"GPU:", part_of(gpus.has_utilization_percent(), gpus.utilization_percent(),
                       counted(static_cast<std::uint64_t>(job.gpus_size()), "GPU"))},
      {"GPU memory:", has_memory ? fmt::format("{:.0f}%, {} on average, {} at most on one GPU",
                                               gpus.memory_percent(), bytes(gpus.memory_bytes()),
                                               bytes(gpus.peak_memory_bytes()))
                                 : std::string()},
      {"GPU energy:", gpus.has_energy_joules() ? energy_text(gpus.energy_joules()) : ""},
      {"CPU:", part_of(efficiency.has_cpu(), efficiency.cpu() * 100, counted(job.cpus(), "CPU"))},
      {"Memory:",
       part_of(efficiency.has_memory(), efficiency.memory() * 100, bytes(job.memory_bytes()))},
      {"Time:", part_of(efficiency.has_time(), efficiency.time() * 100,
                        base::written(base::milliseconds(
                            static_cast<std::int64_t>(job.spec().time_limit_seconds() * 1000))))},
  };
  std::string page;
  for (const auto& [key, value] : lines) page += key_line(key, value, kKeyWidth, 0);
  if (!client::is_ended(job.state())) {
    page += "The job has not ended: what it uses of CPUs and memory is known then.\n";
  }
  return page;
}

int show_jobs(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> ids;
  Output output;
  Arguments arguments(text);
  arguments.words("ID", ids, 1, 100, "the jobs; without one, a list").output(output, {"", "id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  bool is_first = true;
  for (const std::string& id : ids) {
    const auto body = client->get("/v1/jobs/" + base::percent_encoded(id));
    if (!body) return report(console, body.error(), output.wants_documents());
    const auto job = client::message_of<v1::Job>(*body);
    if (output.is_document() || !job) {
      print_next_document(console, output, *body);
      continue;
    }
    if (!std::exchange(is_first, false)) console.out("\n");
    console.out(efficiency_page(*job, console.process_environment().now()));
  }
  return console.out_failed() ? kFailure : kOk;
}

bool names_a_job(std::span<const std::string> words) {
  return !words.empty() && !words.front().empty() && words.front().front() >= '0' &&
         words.front().front() <= '9';
}

}  // namespace

int run_jobs_efficiency(const CommandText& text, Invocation& invocation) {
  if (names_a_job(invocation.words)) return show_jobs(text, invocation);
  const List<v1::Job> list{.pages = kJobPages,
                           .names = {"jobs", "id"},
                           .filters = efficiency_filters(),
                           .columns = efficiency_columns(),
                           .nothing = "no jobs match",
                           .user_column = "user",
                           .complete = complete_query,
                           .is_of_caller = [](const ListOptions& options) {
                             return !options.has("--all-users") && !options.has("--user") &&
                                    !options.has("--team");
                           }};
  return ListCommand(list, &v1::ListJobsResponse::jobs).run(text, invocation);
}

}  // namespace gpu_platform::cli
