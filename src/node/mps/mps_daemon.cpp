#include "node/mps/mps_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "node/folders/node_folders.h"
#include "node/folders/remove_tree.h"
#include "node/mount_table.h"
#include "node/mps/mps_places.h"
#include "node/mps/program_start.h"
#include "node/syscalls.h"
#include "node/user_switch.h"
#include "os/clock.h"
#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

constexpr int kEndMs = 5000;         // in which killed processes are expected to go
constexpr int kServerEndMs = 3000;   // in which a server without clients ends
constexpr std::uint32_t kQuitS = 1;  // in which clients that are left may end
constexpr int kClosedMs = 500;       // in which a daemon that has closed its sockets ends
constexpr int kLookMs = 20;          // between two looks for a daemon that begins
constexpr off_t kMaxLog = 256 * 1024;
constexpr const char* kLog = "log/control.log";

// Acts with the user's rights while it lives: what is named in the user's folder is the user's.
class AsUser {
 public:
  explicit AsUser(const Identity& user)
      : user_(user), is_root_(geteuid() == 0), is_user_(!is_root_ || user_.borrow()) {}
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;
  ~AsUser() {
    if (is_root_ && !UserSwitch::give_back()) _exit(1);
  }
  bool is_user() const { return is_user_; }

 private:
  UserSwitch user_;
  const bool is_root_;
  const bool is_user_;
};

bool has_ended(int pidfd, std::int64_t timeout_ms) {
  pollfd ended{pidfd, POLLIN, 0};
  return poll(&ended, 1, static_cast<int>(timeout_ms)) == 1;
}

// Returns the process that listens there; -1: none does. One to which many connect at once is
// waited for.
int listener_at(const std::string& path, int timeout_ms) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return -1;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const timeval limit{timeout_ms / 1000, timeout_ms % 1000 * 1000};
  for (const int type : {SOCK_SEQPACKET, SOCK_STREAM}) {
    const os::Descriptor socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
    setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    ucred peer{};
    socklen_t size = sizeof peer;
    if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) {
      return peer.pid;
    }
  }
  return -1;
}

}  // namespace

MpsAnswer MpsDaemon::ask(const std::string& commands) const {
  return ask_mps_daemon(program_, commands, o_.answer_ms);
}

MpsPids MpsDaemon::servers() const {
  const MpsAnswer answer = ask(std::string(kMpsServers));
  return answer.why.empty() ? parse_mps_pids(answer.text) : MpsPids{{}, answer.why};
}

bool MpsDaemon::is_mine(int pid) const {
  const std::string processes = os::read_small_file(o_.cgroup, "cgroup.procs");
  const MpsPids found = parse_mps_pids(processes);
  return pid > 0 && std::ranges::find(found.pids, pid) != found.pids.end();
}

int MpsDaemon::listener() const {
  const AsUser as_user(program_.user);
  return as_user.is_user() ? listener_at(program_.folder + "/pipe/control", o_.answer_ms) : -1;
}

bool MpsDaemon::adopt() {
  const int pid = listener();
  os::Descriptor handle(pid > 0 ? open_pidfd(pid) : -1);
  if (!handle.is_open() || !is_mine(pid) || !servers().why.empty()) return false;
  pid_ = pid;
  pidfd_ = std::move(handle);
  return true;
}

std::string MpsDaemon::start(std::string_view gpu, const std::optional<BoardFiles>& board) {
  forget();
  if (!end_mps_cgroup(o_.cgroup, kEndMs)) return "processes of the last MPS daemon do not end";
  if (std::string why = make_pipe_folder(); !why.empty()) return why;
  const os::Descriptor log(open_log(O_CREAT | O_TRUNC));
  if (!log.is_open()) return std::string("open the log of the MPS daemon: ") + strerror(errno);
  UserSwitch user(program_.user);
  MpsStart start;
  start.words = {program_.path, "-f"};
  start.environment = mps_daemon_environment(program_, gpu, board);
  start.user = geteuid() == 0 ? &user : nullptr;
  start.output = log.get();
  start.oom_score = o_.oom_score;
  int handle = -1;
  const int pid = fork_with_pidfd(&handle);
  if (pid == 0) {
    // By itself: one that is born into a cgroup that was killed before is killed, too, by some
    // kernels (seen with Linux 6.18).
    if (!os::write_small_file(o_.cgroup, "cgroup.procs", "0")) _exit(127);
    become_mps_program(start);
  }
  if (pid < 0) return std::string("start the MPS daemon: ") + strerror(errno);
  pid_ = pid;
  pidfd_.reset(handle);
  std::string why = wait_until_it_answers(pid);
  if (!why.empty()) {
    end_mps_cgroup(o_.cgroup, kEndMs);
    forget();
  }
  return why;
}

std::string MpsDaemon::wait_until_it_answers(int pid) {
  const std::int64_t until_ms = os::boot_ms() + o_.answer_ms;
  while (listener() != pid) {
    if (has_ended(pidfd_.get(), kLookMs)) {
      const std::string words = last_words();
      return "the MPS daemon ended at its start" + (words.empty() ? "" : ": " + words);
    }
    if (os::boot_ms() >= until_ms) return "the MPS daemon did not begin to listen in time";
  }
  return servers().why;
}

// A new one, whatever the user has put in its place.
std::string MpsDaemon::make_pipe_folder() const {
  if (unlinkat(o_.folder, "pipe", 0) != 0) remove_tree(o_.folder, "pipe");
  const AsUser as_user(program_.user);
  for (const char* const name : {"pipe", "log"}) {
    const bool is_there = as_user.is_user() && mkdirat(o_.folder, name, 0700) == 0;
    const bool is_kept = name == std::string_view("log") && errno == EEXIST;
    if (!is_there && !is_kept) {
      return std::string("make the folder of the MPS daemon: ") + strerror(errno);
    }
  }
  return {};
}

// One that ends closes its sockets first.
std::string MpsDaemon::check() {
  if (pid_ < 0) return "it was not started";
  std::string why =
      listener() == pid_ ? servers().why : "it cannot be reached in its folder any more";
  return has_ended(pidfd_.get(), why.empty() ? 0 : kClosedMs) ? "it ended" : why;
}

// ---- limits

std::string MpsDaemon::set_limits(std::uint32_t percent, std::uint32_t memory_mib) {
  std::string why = set_limits_of(kMpsDefault, percent, memory_mib);
  const MpsPids living = why.empty() ? servers() : MpsPids{};
  if (!living.why.empty()) return living.why;
  for (const int server : living.pids) {
    if (why.empty()) why = set_limits_of(server, percent, memory_mib);
    if (why.empty()) continue;
    // One that has ended meanwhile takes none.
    const std::vector<int> left = servers().pids;
    if (std::ranges::find(left, server) == left.end()) why.clear();
  }
  return why;
}

std::string MpsDaemon::set_limits_of(int server, std::uint32_t percent,
                                     std::uint32_t memory_mib) const {
  const MpsAnswer compute = ask(mps_set_percent(server, percent) + "\n" + mps_get_percent(server));
  if (!compute.why.empty()) return compute.why;
  std::string why = error_in_mps_percent(compute.text, percent);
  if (!why.empty()) return "the MPS daemon " + why;
  const MpsAnswer memory = ask(mps_set_memory(server, memory_mib) + "\n" + mps_get_memory(server));
  if (!memory.why.empty()) return memory.why;
  why = error_in_mps_memory(memory.text, memory_mib);
  return why.empty() ? "" : "the MPS daemon " + why;
}

// ---- ends

bool MpsDaemon::end_idle_servers() {
  bool is_left = false;
  for (const int server : servers().pids) {
    const MpsAnswer answer = ask(mps_clients_of(server));
    const MpsPids clients = parse_mps_pids(answer.text);
    const bool is_idle = answer.why.empty() && clients.why.empty() && clients.pids.empty();
    if (is_idle) end_server(server);
    is_left = is_left || !is_idle;
  }
  return is_left;
}

void MpsDaemon::end_server(int server) const {
  const os::Descriptor handle(open_pidfd(server));
  if (!handle.is_open() || !is_mine(server)) return;
  ask(mps_end_server(server));
  if (!has_ended(handle.get(), kServerEndMs)) signal_pidfd(handle.get(), SIGKILL);
}

void MpsDaemon::end() {
  if (pid_ > 0) {
    ask(mps_quit(kQuitS));
    has_ended(pidfd_.get(), kServerEndMs);
  }
  end_mps_cgroup(o_.cgroup, kEndMs);
  forget();
}

void MpsDaemon::forget() {
  if (pid_ > 0) waitpid(pid_, nullptr, WNOHANG);  // an adopted one is not our child
  pid_ = -1;
  pidfd_.reset();
}

// ---- the log

int MpsDaemon::open_log(int flags) const {
  const AsUser as_user(program_.user);
  if (!as_user.is_user()) return -1;
  const unsigned mode = (flags & O_CREAT) != 0 ? 0600 : 0;
  return open_below(o_.folder, kLog, O_RDWR | O_APPEND | O_NONBLOCK | flags, mode);
}

void MpsDaemon::trim_log() const {
  const os::Descriptor log(open_log(0));
  struct stat about{};
  if (!log.is_open() || fstat(log.get(), &about) != 0 || about.st_size <= kMaxLog) return;
  [[maybe_unused]] const int trimmed = ftruncate(log.get(), 0);
}

std::string MpsDaemon::last_words() const {
  const os::Descriptor log(open_log(0));
  char text[4096];
  const ssize_t got = log.is_open() ? pread(log.get(), text, sizeof text, 0) : 0;
  std::string_view rest(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  return last_mps_line(rest);
}

}  // namespace gpu_platform::node
