#include "shims/steps/live_usage.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/parse.h"
#include "client/channel.h"
#include "client/exec_session.h"
#include "shims/steps/step_variables.h"
#include "shims/submission/submission.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Variables environment_in(const std::filesystem::path& process) {
  std::ifstream file(process / "environ");
  std::vector<std::string> entries;
  for (std::string entry; std::getline(file, entry, '\0');) entries.push_back(entry);
  return variables_of(entries);
}

// "VmHWM:     1234 kB" as bytes.
std::int64_t memory_in_status(const std::string& status, std::string_view key) {
  const std::size_t at = status.find(key);
  if (at == std::string::npos) return 0;
  std::istringstream rest(status.substr(at + key.size()));
  std::int64_t kibibytes = 0;
  rest >> kibibytes;
  return kibibytes * 1024;
}

// utime, stime, cutime and cstime are the 14th to the 17th field.
std::int64_t cpu_ms_in(const std::string& stat) {
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(stat.substr(name_end + 1));
  std::string field;
  for (int skipped = 0; skipped < 11; ++skipped) rest >> field;
  std::int64_t all = 0;
  for (int i = 0; i < 4; ++i) {
    std::int64_t ticks = 0;
    rest >> ticks;
    all += ticks;
  }
  return all * 1000 / ::sysconf(_SC_CLK_TCK);
}

// Nothing for a process that is not the job's, or is gone.
std::optional<JobProcess> process_at(const std::filesystem::path& path, std::string_view job) {
  const Variables variables = environment_in(path);
  if (variable(variables, "GPU_PLATFORM_JOB_ID") != job) return std::nullopt;
  const std::string status = text_of_file(path / "status");
  JobProcess process;
  process.pid = base::parse_count(path.filename().string(), 1, INT32_MAX).value_or(0);
  process.step = variable(variables, "SLURM_STEP_ID");
  process.task = static_cast<std::int64_t>(
      base::parse_count(variable(variables, "SLURM_PROCID"), 0, UINT32_MAX).value_or(0));
  process.node = variable(variables, "SLURMD_NODENAME");
  process.cpu_ms = cpu_ms_in(text_of_file(path / "stat"));
  process.peak_bytes = memory_in_status(status, "VmHWM:");
  process.resident_bytes = memory_in_status(status, "VmRSS:");
  return process;
}

client::Failure unusable_answer(const std::string& message) {
  return {client::Failure::Kind::kBadAnswer, message, {}, {}};
}

}  // namespace

std::map<std::string, std::vector<LiveTask>> tasks_by_step(
    const std::vector<JobProcess>& processes) {
  std::map<std::string, std::vector<LiveTask>> steps;
  LiveTask batch;
  for (const JobProcess& process : processes) {
    batch.cpu_ms += process.cpu_ms;
    batch.peak_bytes += process.resident_bytes;
    batch.pids.push_back(process.pid);
    if (batch.node.empty()) batch.node = process.node;
    if (process.step.empty()) continue;
    std::vector<LiveTask>& tasks = steps[process.step];
    auto task = std::ranges::find(tasks, process.task, &LiveTask::task);
    if (task == tasks.end()) {
      tasks.push_back({process.task, process.node, 0, 0, {}});
      task = std::prev(tasks.end());
    }
    task->cpu_ms += process.cpu_ms;
    task->peak_bytes = std::max(task->peak_bytes, process.peak_bytes);
    task->pids.push_back(process.pid);
  }
  for (auto& [step, tasks] : steps) std::ranges::sort(tasks, {}, &LiveTask::task);
  if (!processes.empty()) steps["batch"] = {batch};
  return steps;
}

Json live_document(const std::vector<JobProcess>& processes) {
  Json list = Json::array();
  for (const JobProcess& process : processes) {
    list.push_back({{"pid", process.pid},
                    {"step", process.step},
                    {"task", process.task},
                    {"node", process.node},
                    {"cpu_ms", process.cpu_ms},
                    {"peak_bytes", process.peak_bytes},
                    {"resident_bytes", process.resident_bytes}});
  }
  return {{"processes", list}};
}

std::vector<JobProcess> processes_of(const Json& document) {
  std::vector<JobProcess> processes;
  for (const Json& entry : cli::list_at(document, "processes")) {
    const auto number = [&](std::string_view key) {
      return std::max<std::int64_t>(0, cli::integer_at(entry, key).value_or(0));
    };
    processes.push_back({number("pid"), cli::text_at(entry, "step"), number("task"),
                         cli::text_at(entry, "node"), number("cpu_ms"), number("peak_bytes"),
                         number("resident_bytes")});
  }
  return processes;
}

client::Called<std::vector<JobProcess>> live_processes(CommandCall& call, client::Client& client,
                                                       const std::string& job) {
  const auto self = own_path();
  if (!self) return std::unexpected(unusable_answer(self.error().message));
  const int answer = ::memfd_create("sstat", MFD_CLOEXEC);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (answer < 0 || nothing < 0) return std::unexpected(unusable_answer("no file for the answer"));
  client::ProcessEnvironment around = call.around();
  around.in_fd = nothing;
  around.out_fd = answer;
  client::Console quiet(around);
  boost::asio::io_context io;
  auto channel = client::Channel::open(
      io, client, client::exec_target(job, std::vector<std::string>{*self, "live-usage"}, {}));
  if (!channel) {
    ::close(answer);
    ::close(nothing);
    return std::unexpected(channel.error());
  }
  const int code = client::stay_with_command(quiet, io, *std::move(channel), false);
  const std::string text = text_of_file(fmt::format("/proc/self/fd/{}", answer));
  ::close(answer);
  ::close(nothing);
  const auto document = cli::parse_object(text);
  if (code != 0 || !document) return std::unexpected(unusable_answer("the job could not be read"));
  return processes_of(*document);
}

int live_usage(CommandCall& call) {
  const Variables own = variables_of(call.around().environment);
  const std::string_view job = variable(own, "GPU_PLATFORM_JOB_ID");
  if (job.empty()) return call.fail("this runs only inside jobs");
  // Another daemon on the machine may have a job of the same number.
  const std::string cgroup = text_of_file("/proc/self/cgroup");
  std::vector<JobProcess> processes;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    const bool is_process = name.find_first_not_of("0123456789") == std::string::npos;
    if (!is_process || name == fmt::format("{}", ::getpid())) continue;
    if (text_of_file(entry->path() / "cgroup") != cgroup) continue;
    if (auto process = process_at(entry->path(), job)) processes.push_back(std::move(*process));
  }
  call.console().out(cli::json_text(live_document(processes)) + "\n");
  return call.console().out_failed() ? 1 : 0;
}

}  // namespace gpu_platform::shims
