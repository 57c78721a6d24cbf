#include "node/relay/job_entry.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "node/limits/job_limits.h"
#include "node/seccomp/syscall_filter.h"
#include "node/session_keyring.h"
#include "node/syscalls.h"
#include "node/user_switch.h"
#include "os/named_file.h"
#include "os/packet_socket.h"
#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

constexpr std::string_view kDefaultSearchPath = "/usr/local/bin:/usr/bin:/bin";

// The step that a child reached, for its parent; errno goes with it.
enum class Step : std::uint8_t {
  kSetUp,
  kNamespace,
  kUser,
  kWorkdir,
  kStreams,
  kExecute,
  kConnect
};

struct Failure {
  Step step = Step::kSetUp;
  int error = 0;
};

std::optional<Step> become_user(const EntryOptions& options) {
  const int keyring = join_new_session_keyring();
  errno = -keyring;
  if (geteuid() != 0) return std::nullopt;
  if (keyring != 0) return Step::kUser;
  const SwitchFailure failure = UserSwitch(options.request->user).become();
  errno = failure.error != 0 ? failure.error : EPERM;
  return failure.what == nullptr ? std::nullopt : std::optional(Step::kUser);
}

// Enters the job's mount namespace if the job has its own.
bool share_mounts_of(int pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/mnt";
  struct stat theirs{};
  struct stat ours{};
  if (stat(path.c_str(), &theirs) != 0 || stat("/proc/self/ns/mnt", &ours) != 0) return false;
  if (theirs.st_ino == ours.st_ino) return true;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool entered = fd >= 0 && setns(fd, CLONE_NEWNS) == 0;
  if (fd >= 0) close(fd);
  return entered;
}

// A process beside the job may not gain privileges that the job may not gain.
bool share_privileges_of(int pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/status";
  const std::string status = os::read_small_file(AT_FDCWD, path.c_str());
  if (status.empty()) return false;
  const bool is_bound = status.find("\nNoNewPrivs:\t1\n") != std::string::npos;
  return !is_bound || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

// The set-up that every process of ours in a job shares, while it is still root.
std::optional<Step> join_job(const EntryOptions& options) {
  if (setsid() < 0) return Step::kSetUp;
  if (options.oom_score != nullptr) {
    // Best effort: a process that keeps our protection is a smaller evil than none.
    os::write_small_file(AT_FDCWD, "/proc/self/oom_score_adj", options.oom_score);
  }
  if (!join_limit_groups(*options.limits, options.name)) return Step::kSetUp;
  cpu_set_t cpus;
  if (sched_getaffinity(options.job_pid, sizeof cpus, &cpus) == 0) {
    sched_setaffinity(0, sizeof cpus, &cpus);
  }
  if (!share_privileges_of(options.job_pid)) return Step::kSetUp;
  if (geteuid() == 0 && !share_mounts_of(options.job_pid)) return Step::kNamespace;
  return std::nullopt;
}

std::string_view search_path_of(const std::vector<std::string_view>& environment) {
  for (const std::string_view entry : environment) {
    if (entry.starts_with("PATH=")) return entry.data() + 5;
  }
  return kDefaultSearchPath;
}

std::vector<char*> pointers(const std::vector<std::string_view>& texts) {
  std::vector<char*> list;
  for (const std::string_view text : texts) list.push_back(const_cast<char*>(text.data()));
  list.push_back(nullptr);
  return list;
}

void wait_for(int pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool is_missing(int error) {
  return error == ENOENT || error == ENOTDIR;
}

// Does what execvpe does, without its detour through a shell. Returns only on failure, with errno
// of the most telling attempt.
void execute(const LaunchRequest& request) {
  const std::vector<char*> arguments = pointers(request.command);
  const std::vector<char*> environment = pointers(request.environment);
  const std::string_view program = arguments.front();
  if (program.find('/') != std::string_view::npos) {
    execve(arguments.front(), arguments.data(), environment.data());
    return;
  }
  int verdict = ENOENT;
  std::string_view rest = search_path_of(request.environment);
  while (true) {
    const std::size_t end = rest.find(':');
    std::string path(rest.substr(0, end));
    if (!path.empty()) path += '/';  // an empty entry is the current directory
    path += program;
    execve(path.c_str(), arguments.data(), environment.data());
    if (!is_missing(errno)) verdict = errno;
    if ((!is_missing(errno) && errno != EACCES) || end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  errno = verdict;
}

bool take_streams(const Streams& streams) {
  if (streams.is_terminal && ioctl(streams.input, TIOCSCTTY, 0) != 0) return false;
  return dup2(streams.input, 0) >= 0 && dup2(streams.output, 1) >= 0 && dup2(streams.error, 2) >= 0;
}

// As the job has it; what may gain rights may not be filtered without them.
std::optional<Step> filter_syscalls(const EntryOptions& options) {
  if (!options.filters_syscalls) return std::nullopt;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Step::kSetUp;
  const int error = install_syscall_filter();
  errno = -error;
  return error == 0 ? std::nullopt : std::optional(Step::kSetUp);
}

// Returns only on failure.
Step run_command(const EntryOptions& options, const Streams& streams) {
  const LaunchRequest& request = *options.request;
  if (const auto failed = join_job(options)) return *failed;
  if (!take_streams(streams)) return Step::kStreams;
  if (const auto failed = become_user(options)) return *failed;
  if (const auto failed = filter_syscalls(options)) return *failed;
  umask(request.umask);
  if (os::change_to_named_folder(request.workdir.data()) != 0) return Step::kWorkdir;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execute(request);
  return Step::kExecute;
}

std::string describe(const LaunchRequest& request, const Failure& failure) {
  const std::string why = std::string(": ") + strerror(failure.error);
  switch (failure.step) {
    case Step::kSetUp:
      return "join the job" + why;
    case Step::kNamespace:
      return "enter the job's mount namespace" + why;
    case Step::kUser:
      return "become user " + std::to_string(request.user.uid) + why;
    case Step::kWorkdir:
      return std::string("change to directory ") + request.workdir.data() + why;
    case Step::kStreams:
      return "take the streams" + why;
    case Step::kExecute:
      return std::string("execute ") + request.command.front().data() + why;
    case Step::kConnect:
      return "connect" + why;
  }
  return {};
}

// A cgroup that is gone or being removed is that of a job that has ended.
std::string fork_failure(int error) {
  if (error == ENODEV || error == ENOENT) return "the job has just ended";
  return std::string("start a process in the job: ") + strerror(error);
}

// Until the child has spoken or closed its end. What holds it up may never end; nothing where it
// has come so far, else why it was given up and killed.
std::string wait_for_word(const EntryOptions& options, int report, int pid) {
  const auto start = std::chrono::steady_clock::now();
  const auto start_limit = std::chrono::milliseconds(options.request->start_timeout_ms);
  std::string why;
  while (why.empty()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        start + start_limit - std::chrono::steady_clock::now());
    pollfd fds[] = {
        {report, POLLIN, 0}, {options.channel, POLLRDHUP, 0}, {options.job_fd, POLLIN, 0}};
    const auto timeout = std::clamp<std::int64_t>(left.count(), 0, INT_MAX);
    const int ready = poll(fds, std::size(fds), static_cast<int>(timeout));
    if (ready < 0 && errno == EINTR) continue;
    if (fds[0].revents != 0) return {};
    if (fds[1].revents != 0) why = "the client has gone";
    if (fds[2].revents != 0) why = "the job has just ended";
    if (ready <= 0) {
      why = "not started after " + std::to_string(options.request->start_timeout_ms / 1000) +
            " s: its directory or its program is on a file system that does not answer";
    }
  }
  kill(pid, SIGKILL);  // not reaped, so the number is its own
  return why;
}

// The child's word on how it failed; nothing when it executed its program (the pipe closed then).
std::optional<Failure> read_failure(int pipe) {
  Failure failure;
  ssize_t got = -1;
  do {
    got = read(pipe, &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof failure)) return std::nullopt;
  return failure;
}

[[noreturn]] void be_connector(const EntryOptions& options, std::uint16_t port, int report) {
  const auto give_up = [&](Step step) {
    const Failure failure{step, errno};
    os::send_packet(report, {reinterpret_cast<const char*>(&failure), sizeof failure});
    _exit(1);
  };
  if (const auto failed = join_job(options)) give_up(*failed);
  if (const auto failed = become_user(options)) give_up(*failed);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    give_up(Step::kConnect);
  }
  os::send_packet(report, "connected", fd);
  _exit(0);
}

}  // namespace

Entered enter_with_command(const EntryOptions& options, const Streams& streams) {
  Entered entered;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    entered.why = std::string("make a pipe: ") + strerror(errno);
    return entered;
  }
  const int pid = fork_into_cgroup(options.cgroup_fd);
  const int fork_error = errno;
  if (pid == 0) {
    const Step step = run_command(options, streams);
    const Failure failure{step, errno};
    [[maybe_unused]] const ssize_t wrote = write(ends[1], &failure, sizeof failure);
    _exit(127);
  }
  close(ends[1]);
  if (pid > 0) entered.why = wait_for_word(options, ends[0], pid);
  const bool has_spoken = pid > 0 && entered.why.empty();
  const std::optional<Failure> failure = has_spoken ? read_failure(ends[0]) : std::nullopt;
  close(ends[0]);
  if (pid < 0) {
    entered.why = fork_failure(fork_error);
  } else if (!has_spoken) {
    return entered;  // the kernel may never release it, so do not wait
  } else if (failure) {
    wait_for(pid);
    entered.why = describe(*options.request, *failure);
    if (failure->step == Step::kExecute) entered.value = is_missing(failure->error) ? 127 : 126;
    if (failure->step == Step::kWorkdir) entered.value = 126;
  } else {
    entered.pid = pid;
  }
  return entered;
}

Connected connect_as_job(const EntryOptions& options, std::uint16_t port) {
  Connected connected;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    connected.why = std::string("make a socket: ") + strerror(errno);
    return connected;
  }
  const int pid = fork_into_cgroup(options.cgroup_fd);
  const int fork_error = errno;
  if (pid == 0) be_connector(options, port, ends[1]);
  close(ends[1]);
  char buffer[64];
  if (pid > 0) connected.why = wait_for_word(options, ends[0], pid);
  const bool has_spoken = pid > 0 && connected.why.empty();
  const os::Packet packet =
      has_spoken ? os::receive_packet(ends[0], buffer, sizeof buffer) : os::Packet();
  close(ends[0]);
  if (pid > 0 && !has_spoken) return connected;
  if (pid > 0) wait_for(pid);
  Failure failure;
  if (packet.fd >= 0) {
    connected.fd = packet.fd;
  } else if (pid < 0) {
    connected.why = fork_failure(fork_error);
  } else if (packet.bytes.size() == sizeof failure) {
    memcpy(&failure, packet.bytes.data(), sizeof failure);
    connected.why =
        "port " + std::to_string(port) + " of 127.0.0.1: " + describe(*options.request, failure);
  } else {
    connected.why = "the job has just ended";
  }
  return connected;
}

}  // namespace gpu_platform::node
