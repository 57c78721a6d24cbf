#include "node/launcher/slice_keepers.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "node/cgroup_freezer.h"
#include "node/syscalls.h"
#include "os/clock.h"
#include "os/packet_socket.h"

namespace gpu_platform::node {

namespace {

// A keeper that ends sooner than this is not started again at once.
constexpr std::int64_t kSettledMs = 1000;
// In which one that was told to end has thawed all and gone.
constexpr int kEndTimeoutMs = 500;

bool is_over(int pidfd, int timeout_ms) {
  pollfd ended{pidfd, POLLIN, 0};
  return poll(&ended, 1, timeout_ms) == 1;
}

}  // namespace

void SliceKeepers::take(const TimeSlices& order) {
  if (host_.base_fd < 0) return;
  const auto known = keepers_.find(order.gpu);
  if (order.jobs.size() < 2) {
    if (known == keepers_.end()) return;
    end(known->second);
    keepers_.erase(known);
    return;
  }
  Keeper& keeper = keepers_[order.gpu];
  keeper.wanted = order;
  if (keeper.process.pid < 0) {
    start(keeper, os::boot_ms());
  } else {
    send(keeper);
  }
}

// If it does not get through, it is said again while it is so.
void SliceKeepers::pass_on(const GpuIsIdle& news) const {
  const auto known = keepers_.find(news.gpu);
  if (known == keepers_.end() || known->second.socket < 0) return;
  os::send_packet(known->second.socket, encode(news));
}

void SliceKeepers::end_all() {
  for (auto& [gpu, keeper] : keepers_) end(keeper);
  keepers_.clear();
}

void SliceKeepers::watch(std::vector<pollfd>& handles) const {
  for (const auto& [gpu, keeper] : keepers_) {
    if (keeper.process.pidfd >= 0) handles.push_back({keeper.process.pidfd, POLLIN, 0});
  }
}

int SliceKeepers::timeout_ms(std::int64_t now_ms) const {
  std::int64_t timeout = -1;
  for (const auto& [gpu, keeper] : keepers_) {
    if (keeper.process.pid >= 0) continue;
    const std::int64_t left = std::max<std::int64_t>(keeper.start_at_ms - now_ms, 0);
    timeout = timeout < 0 ? left : std::min(timeout, left);
  }
  return static_cast<int>(timeout);
}

void SliceKeepers::work(std::int64_t now_ms) {
  for (auto& [gpu, keeper] : keepers_) {
    if (keeper.process.pid >= 0 && is_over(keeper.process.pidfd, 0)) has_ended(keeper, now_ms);
    if (keeper.process.pid < 0 && now_ms >= keeper.start_at_ms) start(keeper, now_ms);
  }
}

void SliceKeepers::start(Keeper& keeper, std::int64_t now_ms) {
  keeper.started_ms = now_ms;
  keeper.start_at_ms = now_ms + kSettledMs;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return;
  keeper.socket = ends[0];
  children_.keep_private(keeper.socket);
  keeper.process = children_.start_slice_keeper(
      ends[1], [this](model::AttemptId attempt) { return open_cgroup(attempt); });
  close(ends[1]);
  if (keeper.process.pid < 0) return close_handles(keeper);
  send(keeper);
}

// It reads at once. One that does not is no keeper any more.
void SliceKeepers::send(Keeper& keeper) {
  if (os::send_packet(keeper.socket, encode(keeper.wanted))) return;
  signal_pidfd(keeper.process.pidfd, SIGKILL);
}

// It was killed, or could not go on.
void SliceKeepers::has_ended(Keeper& keeper, std::int64_t now_ms) {
  close_handles(keeper);
  thaw(keeper.wanted);
  const bool was_settled = now_ms - keeper.started_ms >= kSettledMs;
  keeper.start_at_ms = was_settled ? now_ms : now_ms + kSettledMs;
  if (o_.error_fd < 0) return;
  const std::string line = "gpu-platform-node: the keeper of the turns on " + keeper.wanted.gpu +
                           " ended; its jobs were thawed, and another one is started\n";
  [[maybe_unused]] const ssize_t wrote = write(o_.error_fd, line.data(), line.size());
}

// Only that one that hangs does not hold us up.
void SliceKeepers::end(Keeper& keeper) {
  const TimeSlices jobs = keeper.wanted;
  if (keeper.process.pid >= 0) {
    signal_pidfd(keeper.process.pidfd, SIGTERM);
    if (!is_over(keeper.process.pidfd, kEndTimeoutMs)) {
      signal_pidfd(keeper.process.pidfd, SIGKILL);
      is_over(keeper.process.pidfd, kEndTimeoutMs);
    }
  }
  close_handles(keeper);
  thaw(jobs);
}

void SliceKeepers::close_handles(Keeper& keeper) {
  if (keeper.socket >= 0) children_.close_private(keeper.socket);
  if (keeper.process.pidfd >= 0) close(keeper.process.pidfd);
  keeper.socket = -1;
  keeper.process = {};
}

void SliceKeepers::thaw(const TimeSlices& jobs) const {
  for (const TimeSliceJob& job : jobs.jobs) {
    const int cgroup = open_cgroup(job.attempt);
    if (cgroup < 0) continue;
    thaw_cgroup(cgroup);
    close(cgroup);
  }
}

int SliceKeepers::open_cgroup(model::AttemptId attempt) const {
  const OpenRecord found = attempts_.look_at(attempt);
  if (found.holder == Holder::kNoRecord || !found.record.beginning) return -1;
  return found.record.beginning->cgroup.empty() ? -1 : attempts_.open_cgroup(attempt, found.record);
}

}  // namespace gpu_platform::node
