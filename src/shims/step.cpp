#include "shims/step.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parse.h"
#include "shims/batch_options.h"
#include "shims/file_pattern.h"

namespace gpu_platform::shims {

namespace {

constexpr int kCannotRun = 126;
constexpr int kNotThere = 127;

base::Error failed(std::string_view what) {
  return base::system_error(what, errno);
}

std::string user_name() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr ? entry->pw_name : fmt::format("{}", ::getuid());
}

base::Status open_as(const std::string& path, int flags, int target) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, 0666);
  if (fd < 0) return std::unexpected(failed("open " + path));
  const int made = ::dup2(fd, target);
  ::close(fd);
  if (made < 0) return std::unexpected(failed("dup2"));
  return {};
}

PatternValues pattern_values(const Variables& variables) {
  PatternValues values;
  values.job = variable(variables, "SLURM_JOB_ID");
  values.array = variable(variables, "SLURM_ARRAY_JOB_ID");
  values.index = variable(variables, "SLURM_ARRAY_TASK_ID");
  values.name = variable(variables, "SLURM_JOB_NAME");
  values.user = variable(variables, "SLURM_JOB_USER");
  values.node = variable(variables, "SLURMD_NODENAME");
  const auto number = [&](std::string_view name) {
    const auto read = base::parse_count(variable(variables, name), 0, UINT32_MAX);
    return static_cast<std::uint32_t>(read.value_or(0));
  };
  values.task = number("SLURM_PROCID");
  values.restarts = number("SLURM_RESTART_COUNT");
  return values;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Becomes the program, looked for in the job's PATH. Returns only when that failed.
base::Error become(std::vector<std::string> words, const Variables& variables) {
  std::vector<std::string> environment = environment_of(variables);
  if (::setenv("PATH", std::string(variable(variables, "PATH")).c_str(), 1) != 0)
    return failed("setenv");
  ::execvpe(words.front().c_str(), pointers(words).data(), pointers(environment).data());
  return failed("run " + words.front());
}

// A file without a name that the interpreter reads the script from; high, so that scripts that
// number their own files do not close it.
base::Result<std::string> script_file(const std::string& script) {
  constexpr int kLeastFd = 100;
  const int made = ::memfd_create("slurm_script", MFD_CLOEXEC);
  if (made < 0) return std::unexpected(failed("memfd_create"));
  std::string_view rest = script;
  while (!rest.empty()) {
    const ssize_t written = ::write(made, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return std::unexpected(failed("write the script"));
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  const int kept = ::fcntl(made, F_DUPFD, kLeastFd);
  if (kept < 0) return std::unexpected(failed("fcntl"));
  ::close(made);
  return fmt::format("/proc/self/fd/{}", kept);
}

// Tasks may share a file, so what is in it goes before the first of them writes. Errors are those
// of the opening.
void empty_files(const Files& files, const Variables& variables, std::uint32_t tasks) {
  PatternValues values = pattern_values(variables);
  for (const std::string& pattern : {files.output, files.error}) {
    for (values.task = 0; values.task < tasks && !pattern.empty(); ++values.task) {
      const auto path = expanded(pattern, values);
      if (path) [[maybe_unused]]
        const int done = ::truncate(path->c_str(), 0);
    }
  }
}

// A task does not inherit what the batch script leaves alone.
void take_all_signals() {
  for (int number = 1; number <= SIGRTMAX; ++number) std::signal(number, SIG_DFL);
}

// In a task: its variables and files, then its program.
[[noreturn]] void be_task(const Step& step, Variables variables, std::uint32_t rank) {
  take_all_signals();
  add_task_variables(variables, {rank, step.tasks, ::getpid()});
  int code = 1;
  base::Error error;
  if (const auto put = redirect(step.files, variables); !put) {
    error = put.error();
  } else {
    error = become(step.command, variables);
    code = errno == ENOENT ? kNotThere : kCannotRun;
  }
  const std::string line = fmt::format("srun: error: task {}: {}\n", rank, error.message);
  [[maybe_unused]] const ssize_t written = ::write(2, line.data(), line.size());
  ::_exit(code);
}

int code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

base::Result<Variables> job_environment(const std::vector<std::string>& environment) {
  Variables variables = variables_of(environment);
  if (!variables.contains("GPU_PLATFORM_JOB_ID")) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      "this runs inside jobs only, started by sbatch or srun");
  }
  const bool may_not_repeat = variables.contains("SLURM_SHIM_NO_REQUEUE");
  add_job_variables(variables, {user_name(), ::getuid(), ::getgid(), ::getpid(), ::time(nullptr)});
  if (may_not_repeat && variables.contains("SLURM_RESTART_COUNT")) {
    return base::fail(
        base::ErrorCode::kFailedPrecondition,
        "the job was started again (its node or GPU was lost, or it was stopped so as "
        "to be queued again), and --no-requeue says that it must not run twice");
  }
  return variables;
}

base::Status redirect(const Files& files, const Variables& variables) {
  const PatternValues values = pattern_values(variables);
  const int how = O_WRONLY | O_CREAT | O_APPEND | (files.is_appended ? 0 : O_TRUNC);
  if (!files.input.empty()) {
    TRY_ASSIGN(const std::string path, expanded(files.input, values));
    TRY(open_as(path, O_RDONLY, 0));
  }
  std::string output;
  if (!files.output.empty()) {
    TRY_ASSIGN(output, expanded(files.output, values));
    TRY(open_as(output, how, 1));
  }
  if (files.error.empty()) {
    if (!output.empty() && ::dup2(1, 2) < 0) return std::unexpected(failed("dup2"));
    return {};
  }
  TRY_ASSIGN(const std::string error, expanded(files.error, values));
  if (error == output) {
    if (::dup2(1, 2) < 0) return std::unexpected(failed("dup2"));
    return {};
  }
  return open_as(error, how, 2);
}

base::Error become_script(const std::string& script, const std::vector<std::string>& words,
                          const Variables& variables) {
  const auto file = script_file(script);
  if (!file) return file.error();
  std::vector<std::string> command = interpreter_of(script);
  if (command.empty())
    return base::Error{base::ErrorCode::kInternal, "the script names no interpreter", {}};
  command.push_back(*file);
  if (!words.empty()) command.insert(command.end(), words.begin() + 1, words.end());
  return become(std::move(command), variables);
}

base::Result<int> run_step(Step step, const Variables& variables) {
  if (step.tasks == 1) be_task(step, variables, 0);
  if (!step.files.is_appended) empty_files(step.files, variables, step.tasks);
  step.files.is_appended = true;
  std::vector<pid_t> tasks;
  for (std::uint32_t rank = 0; rank < step.tasks; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) be_task(step, variables, rank);
    if (pid < 0) {
      const base::Error error = failed("fork");
      for (const pid_t task : tasks) ::kill(task, SIGKILL);
      return std::unexpected(error);
    }
    tasks.push_back(pid);
  }
  // Whoever stops the job signals all of its processes, the tasks too; this one waits for them.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) std::signal(number, SIG_IGN);
  int highest = 0;
  for (const pid_t task : tasks) {
    int status = 0;
    while (::waitpid(task, &status, 0) < 0 && errno == EINTR) {
    }
    highest = std::max(highest, code_of(status));
  }
  return highest;
}

}  // namespace gpu_platform::shims
