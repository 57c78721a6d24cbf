#include "node/mps/mps_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "node/folders/node_folders.h"
#include "node/folders/private_folders.h"
#include "node/mps/mps_daemon.h"
#include "node/protocol.h"
#include "node/syscalls.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/packet_socket.h"

namespace gpu_platform::node {

namespace {

constexpr std::int64_t kPredecessorMs = 30'000;
constexpr int kLockRetryMs = 50;

std::string keeper_failed(const char* what) {
  return std::string(what) + ": " + strerror(errno);
}

// The mount is copied before the namespace is left: it belongs to the one in which it is.
std::string show_shared_memory(int folder) {
  const os::Descriptor shm(open_below(folder, "shm", O_RDONLY | O_DIRECTORY));
  const os::Descriptor tree(static_cast<int>(
      syscall(SYS_open_tree, shm.get(), "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH)));
  if (!tree.is_open()) return keeper_failed("open the shared memory of the MPS daemon");
  if (const int error = enter_mount_namespace(); error != 0) {
    return std::string("make a mount namespace: ") + strerror(-error);
  }
  const long shown =
      syscall(SYS_move_mount, tree.get(), "", AT_FDCWD, "/dev/shm", MOVE_MOUNT_F_EMPTY_PATH);
  if (shown == 0 || errno == ENOENT) return {};
  return keeper_failed("show the shared memory of the MPS daemon");
}

std::set<model::AttemptId> attempts_of(const MpsServer& order) {
  std::set<model::AttemptId> attempts;
  for (const MpsJob& job : order.jobs) attempts.insert(job.attempt);
  return attempts;
}

class MpsKeeper {
 public:
  explicit MpsKeeper(const MpsKeeperOptions& options)
      : o_(options),
        daemon_({options.folder, options.cgroup, options.oom_score, options.answer_ms}) {}

  void run() {
    prepare();
    while (!is_over_) {
      wait();
      take_signals();
      take_orders();
      if (!is_over_ && is_due()) look();
    }
  }

 private:
  void prepare() {
    reset_signal(SIGCHLD);  // the launcher's children are not waited for; the daemon is
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    signals_.reset(signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK));
    wait_for_predecessor();
    if (o_.has_own_memory) error_ = show_shared_memory(o_.folder);
  }

  // The keeper of a launcher that has gone may be at its end. One that does not end, or a user that
  // locks what every user may open, holds us up no longer than this.
  void wait_for_predecessor() const {
    const std::int64_t until_ms = os::boot_ms() + kPredecessorMs;
    while (flock(o_.cgroup, LOCK_EX | LOCK_NB) != 0 && os::boot_ms() < until_ms) {
      poll(nullptr, 0, kLockRetryMs);
    }
  }

  // ---- waiting

  void wait() const {
    pollfd handles[] = {
        {o_.socket, POLLIN, 0}, {signals_.get(), POLLIN, 0}, {daemon_.pidfd(), POLLIN, 0}};
    const std::int64_t left = std::max<std::int64_t>(look_at_ms_ - os::boot_ms(), 0);
    poll(handles, std::size(handles), order_.jobs.empty() ? -1 : static_cast<int>(left));
  }

  bool is_due() const {
    if (order_.jobs.empty()) return false;
    pollfd ended{daemon_.pidfd(), POLLIN, 0};
    return os::boot_ms() >= look_at_ms_ || poll(&ended, 1, 0) == 1;
  }

  void take_signals() {
    signalfd_siginfo info;
    while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const auto number = static_cast<int>(info.ssi_signo);
      if (number != SIGTERM && number != SIGINT && number != SIGHUP) continue;
      if (!std::exchange(is_over_, true)) daemon_.end();
    }
  }

  // ---- the launcher's orders

  // Only the newest counts: each names all jobs.
  void take_orders() {
    std::optional<MpsServer> newest;
    while (!is_over_) {
      const os::Packet packet =
          os::receive_packet(o_.socket, buffer_, sizeof buffer_, MSG_DONTWAIT);
      if (packet.fd >= 0) close(packet.fd);
      is_over_ = packet.kind == os::Packet::Kind::kClosed;
      if (packet.kind != os::Packet::Kind::kMessage) break;
      auto message = decode(packet.bytes);
      auto* const order = message ? std::get_if<MpsServer>(&*message) : nullptr;
      if (order != nullptr) newest = std::move(*order);
    }
    if (newest && !is_over_) take(*std::move(newest));
  }

  void take(MpsServer order) {
    const std::set<model::AttemptId> before = attempts_of(order_);
    const std::set<model::AttemptId> now = attempts_of(order);
    is_recycling_ = is_recycling_ || !std::ranges::includes(now, before);
    order_ = std::move(order);
    daemon_.set_program({order_.program, o_.path, o_.user});
    if (order_.jobs.empty()) {
      daemon_.end();
      is_over_ = true;
      tell(false, "it was ended, because no job needs it", {});
      return;
    }
    const std::string why = make_ready();
    tell(why.empty(), why, order_.jobs);
  }

  // Returns why the daemon is not what the order wants. One that is lost on the way is started
  // again once.
  std::string make_ready() {
    std::string why = error_;
    for (int tries = 0; error_.empty() && tries < 2; ++tries) {
      why = bring_up();
      if (why.empty() && is_recycling_) is_recycling_ = daemon_.end_idle_servers();
      if (why.empty()) why = give_limits();
      if (why.empty() || daemon_.pidfd() < 0) break;
    }
    look_at_ms_ = os::boot_ms() + o_.look_every_ms;
    return why;
  }

  // The daemon has one ceiling for all of its jobs. Each job has its own limits in its environment.
  std::string give_limits() {
    std::uint32_t percent = 0;
    std::uint32_t memory_mib = 0;
    for (const MpsJob& job : order_.jobs) {
      percent = std::max(percent, job.percent);
      memory_mib = std::max(memory_mib, job.memory_mib);
    }
    return daemon_.set_limits(percent, memory_mib);
  }

  std::string bring_up() {
    if (daemon_.pidfd() < 0 && daemon_.adopt()) {
      is_recycling_ = true;  // which jobs have left since then is not known
      return {};
    }
    const std::string lost = daemon_.check();
    if (lost.empty()) return {};
    if (is_ready_) tell_of_loss(lost);
    return daemon_.start(order_.gpu, order_.board);
  }

  // The jobs that had it are told of, and not one that has just come.
  void tell_of_loss(const std::string& lost) {
    if (o_.log_fd >= 0) {
      dprintf(o_.log_fd, "gpu-platform-node: the MPS daemon of user %u on %s was lost (%s)\n",
              o_.user.uid, order_.gpu.c_str(), lost.c_str());
    }
    tell(false, "the MPS daemon was lost: " + lost, ready_jobs_, true);
  }

  // ---- between orders

  void look() {
    daemon_.trim_log();
    const std::string why = make_ready();
    const bool is_new = why.empty() ? !is_ready_ : is_ready_ || why != told_;
    if (is_new) tell(why.empty(), why, order_.jobs);
  }

  void tell(bool is_ready, const std::string& why, const std::vector<MpsJob>& jobs,
            bool is_lost = false) {
    is_ready_ = is_ready;
    told_ = why;
    if (is_ready) ready_jobs_ = jobs;
    MpsState state;
    state.gpu = order_.gpu;
    state.uid = order_.uid;
    state.is_ready = is_ready;
    state.is_lost = is_lost;
    if (is_ready) state.folder = o_.path;
    for (const MpsJob& job : jobs) state.jobs.push_back(job.attempt);
    state.why = why;
    os::send_packet(o_.socket, encode(state));
  }

  const MpsKeeperOptions& o_;
  MpsDaemon daemon_;
  MpsServer order_;
  std::string error_;  // of this keeper: no daemon can be started
  std::string told_;
  std::vector<MpsJob> ready_jobs_;  // of which it was last told that the daemon is ready
  bool is_ready_ = false;
  bool is_recycling_ = false;  // a job has left; a server may be left in disorder
  bool is_over_ = false;
  std::int64_t look_at_ms_ = 0;
  os::Descriptor signals_;
  char buffer_[kMaxMessage];
};

}  // namespace

void run_mps_keeper(const MpsKeeperOptions& options) {
  MpsKeeper(options).run();
}

}  // namespace gpu_platform::node
