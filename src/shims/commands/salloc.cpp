#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <optional>

#include <fmt/format.h>

#include "base/parse.h"
#include "cli/text/json_view.h"
#include "client/answer.h"
#include "client/follow.h"
#include "model/job_spec.h"
#include "shims/command_call.h"
#include "shims/options/batch_options.h"
#include "shims/options/input_variables.h"
#include "shims/steps/job_end.h"
#include "shims/steps/own_job.h"
#include "shims/steps/rendezvous.h"
#include "shims/steps/step.h"
#include "shims/steps/step_shares.h"
#include "shims/submission/het_job.h"
#include "shims/submission/submission.h"
#include "shims/views/job_state.h"

// An allocation is a job whose first process only holds it, and ends when salloc has: the two keep
// a connection. salloc runs its command here; srun enters the job from there.

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kSallocSynopsis = "[options] [COMMAND [ARGUMENT…]]";
constexpr int kUsualWaitMs = 1000;  // a job that starts within it is not told to be pending

// What Slurm's salloc does not give to its command: it is of the job's processes.
constexpr std::array kOfProcesses = {
    "SLURM_PROCID",       "SLURM_LOCALID",   "SLURM_NODEID",        "SLURM_GTIDS",
    "SLURM_TASK_PID",     "SLURMD_NODENAME", "SLURM_TOPOLOGY_ADDR", "SLURM_TOPOLOGY_ADDR_PATTERN",
    "SLURM_CPUS_ON_NODE",
};

std::optional<int> signal_of(std::string_view text) {
  constexpr std::pair<std::string_view, int> kNames[] = {
      {"HUP", SIGHUP},   {"INT", SIGINT},   {"QUIT", SIGQUIT}, {"KILL", SIGKILL},
      {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"TERM", SIGTERM}};
  if (text.empty()) return SIGTERM;
  if (text.starts_with("SIG")) text.remove_prefix(3);
  for (const auto& [name, number] : kNames)
    if (text == name) return number;
  const auto number = base::parse_count(text, 1, SIGRTMAX);
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

class Allocation {
 public:
  Allocation(CommandCall& call, const Settings& settings, std::string id, client::Client& client)
      : call_(call), settings_(settings), id_(std::move(id)), client_(client) {}

  int run(const RendezvousPlace& place, const std::vector<std::string>& command,
          std::optional<base::Duration> start_timeout) {
    if (start_timeout) {
      client::Interrupts interrupts(call_.console(), client_, id_);
      if (!starts_in_time(client_, id_, *start_timeout, call_, interrupts))
        return revoked(*start_timeout);
    }
    JobEnd end(call_, id_);
    if (!wait_for_start(place, end.fd())) {
      call_.fail(fmt::format("Job allocation {} has been revoked.", id_));
      return 1;
    }
    auto holder = place.accept();
    if (!holder) return give_up(call_.fail(holder.error()));
    const auto said = holder->read_line();
    const auto variables = said ? cli::parse_object(*said) : std::nullopt;
    if (!variables) return give_up(call_.fail("the job's first process was not understood"));
    wait_for_news();
    tell(fmt::format("Granted job allocation {}", id_));
    if (settings_.has("bell") && ::isatty(call_.around().err_fd) == 1) call_.console().err("\a");
    tell(fmt::format("Nodes {} are ready for job", cli::text_at(*variables, "SLURM_JOB_NODELIST")));
    if (settings_.has("no-shell")) return leave(*holder);
    const int code = run_command(*holder, *variables, command);
    tell(fmt::format("Relinquishing job allocation {}", id_));
    {
      const Connection closed = std::move(*holder);
    }
    return code;
  }

 private:
  void tell(const std::string& text) {
    if (!settings_.has("quiet")) call_.console().err(fmt::format("salloc: {}\n", text));
  }

  int revoked(base::Duration start_timeout) {
    call_.fail(fmt::format("Unable to allocate resources: {}", start_timeout.value() == 0
                                                                   ? "Requested nodes are busy"
                                                                   : "Connection timed out"));
    tell(fmt::format("Job allocation {} has been revoked.", id_));
    return 1;
  }

  int give_up(int code) {
    [[maybe_unused]] const auto cancelled = client_.post("/v1/jobs/" + id_ + "/cancel");
    return code;
  }

  // The process that waits for the end would wait as long as the allocation lasts.
  [[noreturn]] void leave_now(int code) { ::_exit(code); }

  int leave(const Connection& holder) {
    if (const auto sent = holder.send_line("stay"); !sent) return give_up(call_.fail(sent.error()));
    leave_now(0);
  }

  // False when the job has ended without a start.
  bool wait_for_start(const RendezvousPlace& place, int end) {
    client::Interrupts interrupts(call_.console(), client_, id_);
    std::array<pollfd, 3> waiting = {
        {{place.fd(), POLLIN, 0}, {end, POLLIN, 0}, {interrupts.fd(), POLLIN, 0}}};
    int timeout_ms = kUsualWaitMs;
    while (true) {
      const int found = ::poll(waiting.data(), waiting.size(), timeout_ms);
      if (found == 0) {
        tell(fmt::format("Pending job allocation {}", id_));
        tell(fmt::format("job {} queued and waiting for resources", id_));
        timeout_ms = -1;
      }
      if (found <= 0) continue;
      if (waiting[0].revents != 0) return true;
      if (waiting[1].revents != 0) return false;
      if (waiting[2].revents != 0 && !interrupts.handle()) leave_now(1);
    }
  }

  // The first process is ahead of the news of its start, and until then no step can enter the job.
  // Without a daemon there is no news, and steps say so themselves.
  void wait_for_news() {
    auto stream = client_.stream("/v1/jobs/" + id_ + "/events");
    while (stream) {
      const auto event = stream->next(-1);
      if (!event || !event->has_value()) return;
      const auto change = client::message_of<v1::JobChange>((*event)->data);
      if (!change) return;
      if (change->job().state() == v1::JOB_STATE_RUNNING || has_ended(change->job())) return;
    }
  }

  std::vector<std::string> environment_for(const cli::Json& of_job) const {
    Variables variables = variables_of(call_.around().environment);
    for (const auto& [name, value] : of_job.items())
      if (value.is_string()) variables[name] = value.get<std::string>();
    for (const char* name : kOfProcesses) variables.erase(name);
    return environment_of(variables);
  }

  int run_command(const Connection& holder, const cli::Json& variables,
                  std::vector<std::string> command) {
    const bool is_shell = command.empty();
    if (is_shell) {
      const std::string shell(variable(variables_of(call_.around().environment), "SHELL"));
      command.push_back(shell.empty() ? "/bin/sh" : shell);
    }
    // Keys and signals for the command are not for salloc.
    for (const int number : {SIGINT, SIGQUIT}) std::signal(number, SIG_IGN);
    for (const int number : {SIGTERM, SIGHUP}) std::signal(number, SIG_DFL);
    const auto pid = spawn(command, environment_for(variables));
    if (!pid) return call_.fail(pid.error());
    const int process = static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0));
    std::array<pollfd, 2> waiting = {{{process, POLLIN, 0}, {holder.fd(), POLLIN, 0}}};
    while (process >= 0 && waiting[0].revents == 0) {
      if (::poll(waiting.data(), waiting.size(), -1) <= 0 || waiting[1].revents == 0) continue;
      call_.console().err(fmt::format("salloc: error: Job allocation {} has been revoked.\n", id_));
      waiting[1].fd = -1;
      if (settings_.has("kill-command")) {
        ::kill(*pid, signal_of(settings_.value("kill-command")).value_or(SIGTERM));
      } else if (is_shell) {
        ::kill(*pid, SIGHUP);
      }
    }
    int status = 0;
    ::waitpid(*pid, &status, 0);
    if (process >= 0) ::close(process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  static base::Result<pid_t> spawn(std::vector<std::string>& command,
                                   std::vector<std::string> environment) {
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    sigset_t usual;
    sigemptyset(&usual);
    for (const int number : {SIGINT, SIGQUIT}) sigaddset(&usual, number);
    ::posix_spawnattr_setsigdefault(&attributes, &usual);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    pid_t pid = 0;
    const int error = ::posix_spawnp(&pid, command.front().c_str(), nullptr, &attributes,
                                     pointers(command).data(), pointers(environment).data());
    ::posix_spawnattr_destroy(&attributes);
    if (error != 0) return std::unexpected(base::system_error("run " + command.front(), error));
    return pid;
  }

  CommandCall& call_;
  const Settings& settings_;
  const std::string id_;
  client::Client& client_;
};

}  // namespace

int salloc(CommandCall& call) {
  std::vector<Settings> command_line(1);
  std::vector<std::string> warnings;
  const auto command = read_parts(salloc_options(), call.words(), command_line, warnings);
  if (!command) return call.fail(command.error());
  if (call.answered(command_line.front(), kSallocSynopsis)) return 0;
  Settings settings;
  if (const auto read = read_input_variables(VariablesOf::kSalloc, salloc_options(),
                                             call.around().environment, settings, warnings);
      !read)
    return call.fail(read.error());
  for (const auto& [name, value] : command_line.front().all()) settings.set(Option{name}, value);
  call.warn_all(warnings);
  command_line.front() = settings;
  const auto joined = joined_parts(command_line);
  if (!joined) return call.fail(joined.error());
  settings = joined->settings;
  if (settings.has("no-shell") && !command->empty())
    return call.fail("--no-shell: no command is run with it: leave one of the two out");
  if (settings.has("kill-command") && !signal_of(settings.value("kill-command")))
    return call.fail(
        fmt::format("--kill-command: '{}' is not a signal", settings.value("kill-command")));
  const auto start_timeout = start_timeout_of(settings);
  if (!start_timeout) return call.fail(start_timeout.error());
  auto client = call.client();
  if (!client) return 1;
  const auto place = RendezvousPlace::open();
  if (!place) return call.fail(place.error());
  Work work;
  work.step = "hold-allocation";
  work.name =
      command->empty() ? "interactive" : command->front().substr(command->front().rfind('/') + 1);
  work.words = {place->name()};
  work.fields.set_kind(v1::JOB_KIND_INTERACTIVE);
  if (!joined->parts.empty()) work.variables["SLURM_SHIM_HET"] = parts_text(joined->parts);
  const auto spec = job_request(call, *client, settings, work);
  if (!spec) return call.fail(spec.error());
  const auto id = submit(call, *client, *spec);
  if (!id) return id.error();
  return Allocation(call, settings, *id, *client).run(*place, *command, *start_timeout);
}

// The job's first process, twice: it makes the variables and the file of shares, and becomes itself
// with these, so that steps find them.
int hold_allocation(CommandCall& call) {
  if (call.words().size() != 1) return call.fail("the name of the place to meet is missing");
  Variables given = variables_of(call.around().environment);
  const std::string own = fmt::format("/proc/{}/fd/", ::getpid());
  if (!variable(given, "GPU_PLATFORM_STEP_SHARES").starts_with(own)) {
    auto variables = job_environment(call.around().environment);
    if (!variables) return call.fail(variables.error());
    const auto shares = make_share_file();
    if (!shares) return call.fail(shares.error());
    const auto self = own_path();
    if (!self) return call.fail(self.error());
    (*variables)["GPU_PLATFORM_STEP_SHARES"] = *shares;
    (*variables)["GPU_PLATFORM_STEP_DEVICES"] = variable(*variables, "CUDA_VISIBLE_DEVICES");
    variables->erase("ENVIRONMENT");
    std::vector<std::string> words = {*self, "hold-allocation", call.words().front()};
    std::vector<std::string> environment = environment_of(*variables);
    ::execve(self->c_str(), pointers(words).data(), pointers(environment).data());
    return call.fail(base::system_error("run " + *self, errno));
  }
  const auto connection = meet(call.words().front());
  if (!connection) return 0;  // salloc has gone, and the allocation with it
  cli::Json told = cli::Json::object();
  for (const auto& [name, value] : given)
    if (name.starts_with("SLURM")) told[name] = value;
  if (const auto sent = connection->send_line(cli::json_text(told)); !sent) return 0;
  if (const auto said = connection->read_line(); !said) return 0;
  while (true) ::pause();  // --no-shell: until the job is cancelled or its time is over
}

}  // namespace gpu_platform::shims
