#include "node/launcher/driver_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "node/syscalls.h"
#include "node/user_switch.h"
#include "os/clock.h"
#include "os/packet_socket.h"

namespace gpu_platform::node {

namespace {

constexpr int kSocket = 3;  // also the program's
constexpr int kLock = 4;
constexpr int kLockRetryMs = 100;
constexpr int kEndMs = 2000;  // in which a killed program is expected to go

class Watch {
 public:
  explicit Watch(const DriverWatch& watch)
      : o_(watch), until_ms_(os::boot_ms() + deadline_of(*watch.order)) {}

  [[noreturn]] void run() {
    keep_descriptors();
    if (!take_lock()) give_up("other requests to the driver took all of its time");
    int pidfd = -1;
    const int pid = fork_with_pidfd(&pidfd);
    if (pid == 0) become_program();
    if (pid < 0) give_up(std::string("start its program: ") + strerror(errno));
    const bool has_ended = wait_for(pidfd, left_ms(), is_check());
    if (has_ended) fail(end_of(pid));
    kill(-pid, SIGKILL);
    signal_pidfd(pidfd, SIGKILL);  // it may not lead its group yet
    wait_for(pidfd, kEndMs, false);
    if (left_ms() > 0) give_up("its answer is not wanted any more");
    fail("the driver did not answer within " + std::to_string(o_.order->deadline_ms / 1000) +
         " s; the call was ended");
  }

 private:
  static std::int64_t deadline_of(const RunDriver& order) {
    constexpr std::uint64_t kMost = 3'600'000;
    return static_cast<std::int64_t>(std::min(order.deadline_ms, kMost));
  }

  // A reset is not left half done.
  bool is_check() const {
    return o_.order->verb == DriverVerb::kQuickCheck || o_.order->verb == DriverVerb::kDeepCheck;
  }

  static bool is_given_up() {
    pollfd asker{kSocket, POLLRDHUP, 0};
    return poll(&asker, 1, 0) == 1;
  }

  int left_ms() const {
    return static_cast<int>(std::max<std::int64_t>(until_ms_ - os::boot_ms(), 0));
  }

  // The first answer counts: where the program has given one, this is not read.
  [[noreturn]] void fail(const std::string& why) const {
    os::send_packet(kSocket, encode_driver_answer(failed_answer(o_.order->gpus, why)));
    _exit(0);
  }

  [[noreturn]] void give_up(const std::string& why) const {
    os::send_packet(kSocket, encode_driver_answer(untried_answer(o_.order->gpus, why)));
    _exit(0);
  }

  // Nothing of the launcher's stays open but the lock and the socket.
  void keep_descriptors() const {
    const int lock = o_.lock < 0 ? -1 : fcntl(o_.lock, F_DUPFD, 10);
    const int socket = fcntl(o_.socket, F_DUPFD, 10);
    if (socket < 0 || dup2(socket, kSocket) < 0) _exit(1);
    const bool has_lock = lock >= 0 && dup3(lock, kLock, O_CLOEXEC) >= 0;
    syscall(SYS_close_range, has_lock ? kLock + 1 : kLock, ~0U, 0);
    has_lock_ = has_lock;
  }

  // Boards are apart from each other.
  bool take_lock() const {
    if (o_.order->board) return true;
    if (!has_lock_) return false;
    while (flock(kLock, LOCK_EX | LOCK_NB) != 0) {
      if (left_ms() == 0 || (is_check() && is_given_up())) return false;
      poll(nullptr, 0, std::min(kLockRetryMs, left_ms()));
    }
    return true;
  }

  // Returns whether it ends within the limit. `minds_asker`: and while its answer is wanted.
  static bool wait_for(int pidfd, int limit_ms, bool minds_asker) {
    const std::int64_t until = os::boot_ms() + limit_ms;
    while (true) {
      pollfd seen[] = {{pidfd, POLLIN, 0}, {kSocket, POLLRDHUP, 0}};
      const auto left = static_cast<int>(std::max<std::int64_t>(until - os::boot_ms(), 0));
      poll(seen, minds_asker ? 2 : 1, left);
      if (seen[0].revents != 0) return true;
      if (left == 0 || seen[1].revents != 0) return false;
    }
  }

  static std::string end_of(int pid) {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) return "its program ended without an answer";
    if (WIFSIGNALED(status)) {
      return "its program was ended by signal " + std::to_string(WTERMSIG(status));
    }
    return "its program ended without an answer, with exit code " +
           std::to_string(WEXITSTATUS(status));
  }

  // A group of its own, so that what it starts is killed with it; it goes when we go.
  [[noreturn]] void become_program() const {
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(kLock);
    if (o_.user != nullptr) {
      const SwitchFailure failure = UserSwitch(*o_.user).become();
      if (failure.what != nullptr)
        give_up(std::string("become the daemon's user: ") + failure.what);
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // the switch has taken it back
    }
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    execute();
    give_up(o_.program + ": " + strerror(errno));
  }

  // It gets no environment but this.
  void execute() const {
    std::vector<std::string> words{o_.program, std::string(to_string(o_.order->verb)), "--limit-ms",
                                   std::to_string(std::max(left_ms(), 1))};
    std::vector<std::string> variables{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};
    if (o_.order->watts != 0) {
      words.insert(words.end(), {"--watts", std::to_string(o_.order->watts)});
    }
    if (const auto& board = o_.order->board) {
      words.insert(words.end(), {"--library", board->library, "--nvidia-smi", board->nvidia_smi});
      variables.push_back("GPU_EMULATOR_STATE=" + board->state);
    }
    words.insert(words.end(), o_.order->gpus.begin(), o_.order->gpus.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    execve(o_.program.c_str(), arguments.data(), environment.data());
  }

  const DriverWatch& o_;
  const std::int64_t until_ms_;
  mutable bool has_lock_ = false;
};

}  // namespace

void run_driver_watch(const DriverWatch& watch) {
  reset_signal(SIGCHLD);  // the launcher's children are not waited for; this one is
  Watch(watch).run();
}

}  // namespace gpu_platform::node
