#include "shims/steps/step.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/close_range.h>
#include <pwd.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/parse.h"
#include "client/script_words.h"
#include "shims/options/batch_options.h"
#include "shims/steps/script_file.h"
#include "shims/steps/step_record.h"
#include "shims/steps/step_watch.h"
#include "shims/steps/task_streams.h"
#include "shims/text/file_pattern.h"

namespace gpu_platform::shims {

namespace {

constexpr int kCannotRun = 126;
constexpr int kNotThere = 127;

base::Error failed_call(std::string_view what) {
  return base::system_error(what, errno);
}

std::string user_name() {
  const passwd* entry = ::getpwuid(::getuid());
  return entry != nullptr ? entry->pw_name : fmt::format("{}", ::getuid());
}

base::Status open_as(const std::string& path, int flags, int target) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, 0666);
  if (fd < 0) return std::unexpected(failed_call("open " + path));
  const int made = ::dup2(fd, target);
  ::close(fd);
  if (made < 0) return std::unexpected(failed_call("dup2"));
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
  values.step = number("SLURM_STEP_ID");
  values.node_number = number("SLURM_NODEID");
  values.is_step = variables.contains("SLURM_STEP_ID");
  return values;
}

// Becomes the program, looked for in the job's PATH. Returns only when that failed_call.
base::Error become(std::vector<std::string> words, const Variables& variables) {
  std::vector<std::string> environment = environment_of(variables);
  if (::setenv("PATH", std::string(variable(variables, "PATH")).c_str(), 1) != 0)
    return failed_call("setenv");
  ::execvpe(words.front().c_str(), pointers(words).data(), pointers(environment).data());
  return failed_call("run " + words.front());
}

// Tasks may share a file, so what is in it goes before the first of them writes. Errors are those
// of the opening.
void empty_files(const Step& step, const Variables& variables) {
  PatternValues values = pattern_values(variables);
  for (const std::string& pattern : {step.files.output, step.files.error}) {
    for (values.task = 0; values.task < step.tasks && !pattern.empty(); ++values.task) {
      const std::size_t node = place_of(step.places.layout, values.task).node;
      values.node = step.places.nodes[node].name;
      values.node_number = static_cast<std::uint32_t>(node);
      const auto path = expanded(pattern, values);
      if (path) [[maybe_unused]]
        const int done = ::truncate(path->c_str(), 0);
    }
  }
}

// A task does not inherit what the batch script leaves alone.
void take_all_signals() {
  for (int number = 1; number <= SIGRTMAX; ++number) std::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// The files of one task: nothing of a stream that it does not have.
Files files_of_task(const Step& step, std::uint32_t rank) {
  Files files = step.files;
  if (!step.input.has(rank)) files.input = "/dev/null";
  if (!step.output.has(rank)) files.output = "/dev/null";
  if (!step.error.has(rank)) files.error = "/dev/null";
  return files;
}

// The process that signals all processes of the job: the parent of its first one, which is this one
// where no steps are counted.
pid_t own_starter(const Variables& variables) {
  const std::string_view path = variable(variables, "GPU_PLATFORM_STEP_SHARES");
  if (path.empty()) return ::getppid();
  std::ifstream file(std::string(path.substr(0, path.find("/fd/"))) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // the name may have anything in it
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(text.substr(name_end + 1));
  std::string state;
  pid_t parent = 0;
  rest >> state >> parent;
  return parent;
}

const std::vector<std::string>& program_of(const Step& step, std::uint32_t rank) {
  return step.programs.empty() ? step.command : step.programs[rank];
}

base::Status bind_cpus(const Step& step, const Variables& variables, std::uint32_t rank,
                       std::uint32_t local) {
  const Cpus allowed = allowed_cpus();
  const bool is_own = step.cpu_binding.kind == CpuBinding::Kind::kOwn;
  TRY_ASSIGN(const auto cpus, cpus_of_task(step.cpu_binding, is_own ? step.cpus : allowed,
                                           step.cpus_per_task, local));
  if (cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::uint32_t cpu : *cpus) CPU_SET(cpu, &set);
    if (::sched_setaffinity(0, sizeof set, &set) != 0)
      return std::unexpected(failed_call("--cpu-bind: bind the task"));
  }
  if (!step.cpu_binding.is_verbose) return {};
  const BoundTask task{std::string(variable(variables, "SLURMD_NODENAME")), rank, ::getpid()};
  const std::string line = cpu_binding_line(step.cpu_binding, task, cpus.value_or(allowed));
  [[maybe_unused]] const ssize_t written = ::write(2, line.data(), line.size());
  return {};
}

// Runs in a task: sets its variables and files, then executes its program. `streams` has those that
// pass through srun.
[[noreturn]] void be_task(const Step& step, Variables variables, std::uint32_t rank,
                          TaskStreams* streams) {
  take_all_signals();
  add_task_variables(variables, {rank, step.tasks, ::getpid(), step.id});
  const TaskPlace place = place_of(step.places.layout, rank);
  add_place_variables(variables, step.places, place);
  const auto prepare = [&]() -> base::Status {
    const std::vector<Gpu>& on_node = step.places.nodes[place.node].gpus;
    TRY_ASSIGN(const auto gpus, gpus_of_task(step.binding, on_node, place.local));
    add_gpu_variables(variables, on_node, gpus);
    Files files = files_of_task(step, rank);
    if (streams != nullptr) {
      TRY(streams->take(rank));
      if (streams->carries_output()) files.output = files.error = {};
    }
    TRY(redirect(files, variables));
    return bind_cpus(step, variables, rank, place.local);
  };
  int code = 1;
  base::Error error;
  if (const auto prepared = prepare(); !prepared) {
    error = prepared.error();
  } else {
    // Nothing that srun or the batch script had open.
    ::syscall(SYS_close_range, 3U, ~0U, static_cast<unsigned>(CLOSE_RANGE_CLOEXEC));
    error = become(program_of(step, rank), variables);
    code = errno == ENOENT ? kNotThere : kCannotRun;
  }
  const std::string line = fmt::format("srun: error: task {}: {}\n", rank, error.message);
  [[maybe_unused]] const ssize_t written = ::write(2, line.data(), line.size());
  ::_exit(code);
}

// The destinations of the lines of a task that pass through srun. Files are opened once.
base::Result<Outlet> outlet_of(const Files& files, const Variables& variables,
                               std::map<std::string, int>& opened) {
  const PatternValues values = pattern_values(variables);
  const auto descriptor = [&](const std::string& pattern) -> base::Result<int> {
    TRY_ASSIGN(const std::string path, expanded(pattern, values));
    const auto [place, is_new] = opened.try_emplace(path, -1);
    if (is_new) {
      place->second =
          ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    }
    if (place->second < 0) return std::unexpected(failed_call("open " + path));
    return place->second;
  };
  Outlet outlet;
  if (!files.output.empty()) {
    TRY_ASSIGN(outlet.output, descriptor(files.output));
    outlet.error = outlet.output;
  }
  if (!files.error.empty()) {
    TRY_ASSIGN(outlet.error, descriptor(files.error));
  }
  return outlet;
}

bool is_null_device(int fd) {
  struct stat found = {};
  struct stat null = {};
  return ::fstat(fd, &found) == 0 && ::stat("/dev/null", &null) == 0 && S_ISCHR(found.st_mode) &&
         found.st_rdev == null.st_rdev;
}

StreamRules stream_rules(const Step& step) {
  StreamRules rules;
  rules.tasks = step.tasks;
  rules.is_labelled = step.is_labelled;
  rules.is_unbuffered = step.is_unbuffered;
  if (!step.files.input.empty() || is_null_device(0)) return rules;
  if (step.caller != nullptr && step.tasks == 1) return rules;
  rules.input = StreamRules::Input::kCopied;
  for (std::uint32_t rank = 0; rank < step.tasks; ++rank)
    if (step.input.has(rank)) rules.readers.push_back(rank);
  return rules;
}

// Starts every task. One that is alone has srun's streams and process group.
base::Status start_tasks(const Step& step, const Variables& variables, bool is_alone,
                         TaskStreams& streams, StepWatch& watch) {
  std::map<std::string, int> opened;
  const pid_t self = ::getpid();
  for (std::uint32_t rank = 0; rank < step.tasks; ++rank) {
    Variables of_task = variables;
    add_task_variables(of_task, {rank, step.tasks, 0, step.id});
    add_place_variables(of_task, step.places, place_of(step.places.layout, rank));
    Outlet outlet;
    if (streams.carries_output()) {
      TRY_ASSIGN(outlet, outlet_of(files_of_task(step, rank), of_task, opened));
    }
    TRY(streams.open(rank, outlet));
    const pid_t pid = ::fork();
    if (pid == 0) {
      // Without the step's first process no process would wait for it, nor end it at its limit.
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != self) ::_exit(1);
      if (!is_alone) ::setpgid(0, 0);  // the keys of a terminal are for srun
      be_task(step, variables, rank, is_alone ? nullptr : &streams);
    }
    if (pid < 0) return std::unexpected(failed_call("fork"));
    streams.forked(rank);
    watch.add(rank, pid);
  }
  return {};
}

WatchRules watch_rules(const Step& step, const Variables& variables, bool is_alone) {
  WatchRules rules;
  rules.step_id = fmt::format("{}.{}", variable(variables, "SLURM_JOB_ID"), step.id);
  rules.ends_on_failure = step.ends_on_failure;
  rules.on_interrupt = step.on_interrupt;
  rules.seconds = step.seconds;
  rules.seconds_after_end = step.seconds_after_end;
  rules.starter = own_starter(variables);
  rules.shares_group = is_alone;
  rules.caller = step.caller;
  for (std::uint32_t rank = 0; step.caller != nullptr && rank < step.tasks; ++rank)
    rules.nodes.push_back(step.places.nodes[place_of(step.places.layout, rank).node].name);
  return rules;
}

// As if the task had taken the place of this process. Returns if no signal ended it.
void die_of_signal(int signal) {
  if (signal == 0) return;
  const rlimit no_core = {};
  ::setrlimit(RLIMIT_CORE, &no_core);  // the task has left its own
  std::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  ::raise(signal);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
}

StepFacts facts_of(const Step& step, const Variables& variables) {
  StepFacts facts;
  facts.job = variable(variables, "GPU_PLATFORM_JOB_ID");
  const auto attempt =
      base::parse_count(variable(variables, "GPU_PLATFORM_ATTEMPT"), 1, UINT32_MAX);
  facts.attempt = static_cast<std::uint32_t>(attempt.value_or(1));
  facts.number = step.id;
  facts.command = program_of(step, 0).front();
  facts.tasks = step.tasks;
  for (const StepNode& node : step.places.nodes) {
    facts.nodes.push_back(node.name);
    facts.gpus += static_cast<std::uint32_t>(node.gpus.size());
  }
  facts.cpus = step.amounts->cpus;
  facts.memory_bytes = step.amounts->memory_bytes;
  return facts;
}

}  // namespace

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

base::Result<Variables> job_environment(const std::vector<std::string>& environment) {
  Variables variables = variables_of(environment);
  if (!variables.contains("GPU_PLATFORM_JOB_ID")) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      "this runs only inside jobs that sbatch or srun started");
  }
  const bool may_not_repeat = variables.contains("SLURM_SHIM_NO_REQUEUE");
  add_job_variables(variables, {user_name(), ::getuid(), ::getgid(), ::getpid(), ::time(nullptr)});
  if (may_not_repeat && variables.contains("SLURM_RESTART_COUNT")) {
    return base::fail(
        base::ErrorCode::kFailedPrecondition,
        "the job was started again (its node or GPU was lost, or it was stopped in order "
        "to be queued again), and with --no-requeue it must not run twice");
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
    if (!output.empty() && ::dup2(1, 2) < 0) return std::unexpected(failed_call("dup2"));
    return {};
  }
  TRY_ASSIGN(const std::string error, expanded(files.error, values));
  if (error == output) {
    if (::dup2(1, 2) < 0) return std::unexpected(failed_call("dup2"));
    return {};
  }
  return open_as(error, how, 2);
}

base::Error become_script(const std::string& script, const std::vector<std::string>& words,
                          const Variables& variables) {
  const auto file = script_file(script, variables);
  if (!file) return file.error();
  std::vector<std::string> command = client::interpreter_of(script);
  if (command.empty())
    return base::Error{base::ErrorCode::kInternal, "the script names no interpreter", {}};
  command.push_back(*file);
  if (!words.empty()) command.insert(command.end(), words.begin() + 1, words.end());
  return become(std::move(command), variables);
}

Cpus allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  Cpus cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

base::Result<int> run_step(Step step, Variables variables) {
  for (const char* name : {"SLURM_STEP_ID", "SLURM_STEPID"})
    variables[name] = fmt::format("{}", step.id);
  const bool is_alone = step.tasks == 1 && !step.seconds && !step.is_labelled &&
                        !step.is_unbuffered && step.caller == nullptr;
  if (is_alone && !step.amounts) be_task(step, variables, 0, nullptr);
  if (!step.files.is_appended && !is_alone) empty_files(step, variables);
  step.files.is_appended = step.files.is_appended || !is_alone;
  auto watch = StepWatch::begin(watch_rules(step, variables, is_alone));
  if (!watch) return std::unexpected(watch.error());
  TaskStreams streams(is_alone ? StreamRules() : stream_rules(step));
  TRY(start_tasks(step, variables, is_alone, streams, *watch));
  std::optional<StepRecorder> recorder;
  if (step.amounts) recorder.emplace(facts_of(step, variables)).begin();
  const int code = watch->wait(streams);
  if (recorder) recorder->end(watch->usage(), watch->has_timed_out());
  if (step.caller != nullptr) [[maybe_unused]]
    const auto told = step.caller->send_line("ended");
  if (is_alone || (step.caller != nullptr && step.tasks == 1))
    die_of_signal(watch->usage().signal());
  return code;
}

}  // namespace gpu_platform::shims
