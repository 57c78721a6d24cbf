#include "shims/views/job_view.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "api/convert/text_forms.h"
#include "base/parse.h"
#include "cli/text/text.h"
#include "client/answer.h"
#include "model/job_spec.h"
#include "shims/steps/step_variables.h"
#include "shims/text/host_list.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_state.h"

namespace gpu_platform::shims {

namespace {

std::string exit_text(std::uint32_t code, const std::string& signal_name) {
  return fmt::format("{}:{}", code, api::signal_number(signal_name).value_or(0));
}

}  // namespace

std::string label_of(const v1::Job& job, const std::string& name) {
  const auto label = job.spec().labels().find(name);
  return label == job.spec().labels().end() ? std::string() : label->second;
}

std::string array_task_id(const v1::Job& job, std::string_view members) {
  if (!members.empty()) return fmt::format("{}_[{}]", job.array_id(), members);
  if (job.array_id().empty()) return job.id();
  return fmt::format("{}_{}", job.array_id(), array_index_of(job));
}

std::string array_index_of(const v1::Job& job) {
  return job.has_array_index() ? fmt::format("{}", job.array_index()) : std::string();
}

const v1::Attempt* latest_attempt(const v1::Job& job) {
  return job.attempts().empty() ? nullptr : &*job.attempts().rbegin();
}

std::vector<std::string> node_names(const v1::Job& job) {
  const v1::Attempt* attempt = latest_attempt(job);
  const std::string_view code = state_of(job).code;
  if (attempt == nullptr || code == "PD" || code == "PR") return {};
  return {attempt->nodes().begin(), attempt->nodes().end()};
}

bool is_on_any(const v1::Job& job, const std::string& list) {
  const auto wanted = host_names(list);
  return std::ranges::any_of(node_names(job), [&](const std::string& name) {
    return std::ranges::find(wanted, name) != wanted.end();
  });
}

std::string output_file_of(const v1::Job& job) {
  return job.output().empty() ? job.spec().output() : job.output();
}

std::string error_file_of(const v1::Job& job) {
  const std::string& own = job.error().empty() ? job.spec().error() : job.error();
  return own.empty() ? output_file_of(job) : own;
}

std::string node_of(const v1::Job& job) {
  return host_list(node_names(job));
}

std::string first_node_of(const v1::Job& job) {
  const auto nodes = node_names(job);
  return nodes.empty() ? std::string() : nodes[host_order(nodes).front()];
}

std::int64_t node_count(const v1::Job& job) {
  const auto nodes = std::ssize(node_names(job));
  if (nodes > 0) return nodes;
  return std::max<std::int64_t>(1, job.spec().has_nodes() ? job.spec().nodes() : 1);
}

std::int64_t task_count(const v1::Job& job) {
  const auto tasks = base::parse_count(label_of(job, "slurm.tasks"), 1, UINT32_MAX);
  return tasks ? static_cast<std::int64_t>(*tasks) : node_count(job);
}

std::string required_nodes_of(const v1::Job& job) {
  return fmt::format("{}", fmt::join(job.spec().nodelist(), ","));
}

std::string excluded_nodes_of(const v1::Job& job) {
  return fmt::format("{}", fmt::join(job.spec().exclude(), ","));
}

std::string types_of(const v1::Job& job) {
  const auto& types = job.spec().gpu_types();
  return types.empty() ? "(null)" : fmt::format("{}", fmt::join(types, "|"));
}

std::string partition_of(const v1::Job& job) {
  const std::string label = label_of(job, "slurm.partition");
  return label.empty() ? std::string(kPartition) : label;
}

std::string qos_of(const v1::Job& job) {
  const std::string label = label_of(job, "slurm.qos");
  if (!label.empty()) return label;
  const std::string priority = job.spec().priority();
  if (priority.empty() || priority == "MEDIUM") return "normal";
  return lower_case(priority);
}

std::string dependency_of(const v1::Job& job) {
  const std::string unmet = job.dependency_unmet();
  if (unmet.empty() || state_of(job).code != "PD") return "(null)";
  std::string text;
  for (const char c : unmet) {
    if (c == ',' || c == '?') text += "(unfulfilled)";
    text.push_back(c);
  }
  return text + "(unfulfilled)";
}

bool is_batch(const v1::Job& job) {
  const auto& command = job.spec().command();
  const bool is_step =
      command.size() > 1 && command[0].ends_with("gpu-platform-slurm") && command[1] == "job-step";
  return !is_step;
}

std::string command_of(const v1::Job& job) {
  const std::vector<std::string> command(job.spec().command().begin(), job.spec().command().end());
  const bool is_ours = command.size() > 1 && command[0].ends_with("gpu-platform-slurm");
  if (!is_ours) {
    return command.empty() ? "(null)" : cli::shell_quoted(cli::without_script_text(command));
  }
  const std::string script = label_of(job, "slurm.command");
  std::vector<std::string> words(command.begin() + 2, command.end());
  if (command[1] == "batch-step") {
    if (script.empty()) return "(null)";
    if (words.empty()) return script;
    words.front() = script;
  }
  return words.empty() ? "(null)" : cli::joined(words, " ");
}

std::string priority_of(const v1::Job& job) {
  if (job.state() == v1::JOB_STATE_HELD) return "0";
  constexpr std::string_view kClasses[] = {"LOW", "MEDIUM", "HIGH", "CRITICAL"};
  const v1::JobSpec& spec = job.spec();
  const auto rank = std::ranges::find(kClasses, std::string_view(spec.priority())) - kClasses;
  return fmt::format("{}", (rank % 4 + 1) * 1000 + std::int64_t{spec.priority_number()} * 100);
}

std::string array_throttle(const v1::Job& job) {
  const std::string array = job.spec().array();
  const std::size_t percent = array.find('%');
  return percent == std::string::npos ? std::string() : array.substr(percent + 1);
}

std::int64_t restarts_of(const v1::Job& job) {
  return std::max<std::int64_t>(1, job.attempt()) - 1;
}

std::optional<base::Instant> expected_start(const v1::Job& job) {
  const auto started = client::time_of(job.started_at());
  return started ? started : client::time_of(job.estimated_start());
}

std::int64_t exit_status_of(const v1::Job& job) {
  const auto signal = api::signal_number(job.signal());
  return std::int64_t{job.exit_code()} * 256 + signal.value_or(0);
}

std::int64_t group_number(const std::string& user) {
  const passwd* entry = ::getpwnam(user.c_str());
  return entry == nullptr ? 0 : static_cast<std::int64_t>(entry->pw_gid);
}

std::string group_name(const std::string& user) {
  const passwd* entry = ::getpwnam(user.c_str());
  const group* found = entry == nullptr ? nullptr : ::getgrgid(entry->pw_gid);
  return found == nullptr ? user : found->gr_name;
}

std::vector<QueueEntry> with_joined_members(std::vector<v1::Job> jobs) {
  std::map<std::pair<std::string, std::string>, std::vector<std::int64_t>> waiting;
  const auto key_of = [](const v1::Job& job) { return std::pair(job.array_id(), reason_of(job)); };
  const auto is_joined = [](const v1::Job& job) {
    return !job.array_id().empty() && state_of(job).code == "PD" && restarts_of(job) == 0;
  };
  for (const v1::Job& job : jobs) {
    if (is_joined(job)) waiting[key_of(job)].push_back(job.array_index());
  }
  std::vector<QueueEntry> result;
  for (v1::Job& job : jobs) {
    const auto members = is_joined(job) ? waiting.find(key_of(job)) : waiting.end();
    if (members == waiting.end()) {
      if (!is_joined(job)) result.push_back({std::move(job), {}});
      continue;
    }
    const std::string throttle = array_throttle(job);
    std::ranges::sort(members->second);
    std::string indices =
        cli::ranges_of(members->second) + (throttle.empty() ? "" : "%" + throttle);
    waiting.erase(members);
    result.push_back({std::move(job), std::move(indices)});
  }
  return result;
}

std::vector<QueueEntry> single_entries(std::vector<v1::Job> jobs) {
  std::vector<QueueEntry> result;
  for (v1::Job& job : jobs) result.push_back({std::move(job), {}});
  return result;
}

std::string comment_of(const v1::Job& job) {
  return job.spec().comment();
}

base::Duration run_time(const v1::Job& job, base::Instant now) {
  const auto started = client::time_of(job.started_at());
  if (!started) return {};
  return client::time_of(job.ended_at()).value_or(now) - *started;
}

base::Duration time_limit(const v1::Job& job) {
  return base::milliseconds(static_cast<std::int64_t>(job.spec().time_limit_seconds() * 1000));
}

std::string slurm_time(const std::optional<base::Instant>& at, std::string_view none) {
  if (!at) return std::string(none);
  // The form belongs to the whole process, as its time zone does.
  const char* form = std::getenv("SLURM_TIME_FORMAT");
  const base::Instant now(std::int64_t{std::time(nullptr)} * 1'000'000'000);
  return time_in_form(*at, now, form == nullptr ? "" : form);
}

std::string exit_and_signal(const v1::Job& job) {
  return exit_text(job.exit_code(), job.signal());
}

std::string exit_and_signal(const v1::JobStep& step) {
  return exit_text(step.exit_code(), step.signal());
}

std::string recorded_exit_of(const v1::Job& job) {
  const std::string_view code = state_of(job).code;
  return code == "TO" || code == "CA" ? "0:0" : exit_and_signal(job);
}

std::string own_user() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr ? entry->pw_name : fmt::format("{}", ::getuid());
}

}  // namespace gpu_platform::shims
