#include "shims/steps/step_shares.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

namespace gpu_platform::shims {

namespace {

// What each byte of the file stands for. Locks need no bytes that are there.
constexpr off_t kTurn = 1 << 10;
constexpr off_t kGpus = 1 << 20;
constexpr off_t kCpus = 1 << 24;
constexpr off_t kMemory = 1 << 28;
constexpr off_t kSteps = 1 << 30;  // and the number of the step: it has a share
// Each node has bytes of its own among them.
constexpr off_t kGpusOfNode = 1 << 10;
constexpr off_t kCpusOfNode = 1 << 14;

off_t gpus_at(std::uint32_t node) {
  return kGpus + kGpusOfNode * node;
}
off_t cpus_at(std::uint32_t node) {
  return kCpus + kCpusOfNode * node;
}
off_t memory_at(std::uint32_t node) {
  return kMemory + off_t{kMemoryParts} * node;
}

// True when it was taken, or given back; false when another step has it.
base::Result<bool> lock(int fd, short type, off_t at, int command = F_OFD_SETLK) {
  struct flock request = {};
  request.l_type = type;
  request.l_whence = SEEK_SET;
  request.l_start = at;
  request.l_len = 1;
  while (::fcntl(fd, command, &request) != 0) {
    if (errno == EAGAIN || errno == EACCES) return false;
    if (errno != EINTR) return std::unexpected(base::system_error("lock a step's share", errno));
  }
  return true;
}

// One step at a time looks for room. It is held for the moments of the look only.
class Turn {
 public:
  explicit Turn(int fd) : fd_(fd), status_(lock(fd, F_WRLCK, kTurn, F_OFD_SETLKW)) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { [[maybe_unused]] const auto done = lock(fd_, F_UNLCK, kTurn); }
  const base::Result<bool>& status() const { return status_; }

 private:
  int fd_;
  base::Result<bool> status_;
};

// The first `count` of `of` that no step has; fewer where there are no more.
base::Result<std::vector<std::uint32_t>> lock_some(int fd, off_t first, std::uint32_t of,
                                                   std::uint32_t count) {
  std::vector<std::uint32_t> got;
  for (std::uint32_t i = 0; i < of && got.size() < count; ++i) {
    TRY_ASSIGN(const bool is_ours, lock(fd, F_WRLCK, first + i));
    if (is_ours) got.push_back(i);
  }
  return got;
}

base::Status give_back(int fd, off_t first, const std::vector<std::uint32_t>& places) {
  for (const std::uint32_t place : places) {
    TRY_ASSIGN([[maybe_unused]] const bool done, lock(fd, F_UNLCK, first + place));
  }
  return {};
}

// What is locked on one node.
struct HeldShare {
  NodeShare share;
  std::vector<std::uint32_t> memory;
};

base::Status give_back(int fd, const HeldShare& held) {
  TRY(give_back(fd, gpus_at(held.share.node), held.share.gpus));
  TRY(give_back(fd, cpus_at(held.share.node), held.share.cpus));
  return give_back(fd, memory_at(held.share.node), held.memory);
}

// Returns whether the node has room, and takes it.
base::Result<bool> hold(int fd, const NodeRoom& room, const ShareWish& wish, HeldShare& held) {
  NodeShare& share = held.share;
  share.node = room.node;
  TRY_ASSIGN(share.gpus, lock_some(fd, gpus_at(room.node), room.gpus, wish.gpus));
  TRY_ASSIGN(share.cpus, lock_some(fd, cpus_at(room.node), room.cpus, wish.cpus));
  TRY_ASSIGN(held.memory, lock_some(fd, memory_at(room.node), kMemoryParts, wish.memory));
  if (share.gpus.size() == wish.gpus && share.cpus.size() == wish.cpus &&
      held.memory.size() == wish.memory)
    return true;
  TRY(give_back(fd, held));
  return false;
}

// A thread that blocks until the step's last process has ended.
base::Result<bool> begin_waiting(int own, std::uint32_t step, int told) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the first thread
  base::Result<bool> begun = true;
  try {
    std::thread([own, step, told] {
      [[maybe_unused]] const auto got = lock(own, F_RDLCK, kSteps + step, F_OFD_SETLKW);
      ::close(own);
      [[maybe_unused]] const ssize_t written = ::write(told, "e", 1);
    }).detach();
  } catch (const std::system_error&) {
    ::close(own);
    begun = base::fail(base::ErrorCode::kInternal, "start a thread that waits for a step");
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return begun;
}

}  // namespace

base::Result<std::string> make_share_file() {
  constexpr int kLeastFd = 100;  // scripts number their own files from 3 on
  const int made = ::memfd_create("step_shares", MFD_CLOEXEC);
  if (made < 0) return std::unexpected(base::system_error("memfd_create", errno));
  const int kept = ::fcntl(made, F_DUPFD, kLeastFd);
  const int error = errno;
  ::close(made);
  if (kept < 0) return std::unexpected(base::system_error("fcntl", error));
  return fmt::format("/proc/{}/fd/{}", ::getpid(), kept);
}

base::Result<StepShares> StepShares::open(const std::string& path) {
  // Opened anew: an inherited one would share its locks with every other step.
  const int fd = ::open(path.c_str(), O_RDWR);
  if (fd < 0) return std::unexpected(base::system_error("open the shares of steps", errno));
  return StepShares(fd);
}

StepShares::StepShares(StepShares&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), id_(other.id_) {
  std::swap(ends_, other.ends_);
  std::swap(awaited_, other.awaited_);
  std::swap(others_, other.others_);
}

// The writing end of the pipe stays for the threads that still wait.
StepShares::~StepShares() {
  if (fd_ >= 0) ::close(fd_);
}

base::Result<std::uint32_t> StepShares::next_step() {
  const Turn turn(fd_);
  if (!turn.status()) return std::unexpected(turn.status().error());
  std::uint32_t next = 0;
  if (::pread(fd_, &next, sizeof next, 0) < 0)
    return std::unexpected(base::system_error("read the number of steps", errno));
  id_ = next;
  const std::uint32_t after = next + 1;
  if (::pwrite(fd_, &after, sizeof after, 0) < 0)
    return std::unexpected(base::system_error("write the number of steps", errno));
  return next;
}

base::Result<std::optional<std::vector<NodeShare>>> StepShares::take(
    const std::vector<NodeRoom>& rooms, const std::vector<ShareWish>& wishes) {
  const Turn turn(fd_);
  if (!turn.status()) return std::unexpected(turn.status().error());
  std::vector<HeldShare> all;
  for (const NodeRoom& room : rooms) {
    if (all.size() == wishes.size()) break;
    HeldShare held;
    TRY_ASSIGN(const bool has_room, hold(fd_, room, wishes[all.size()], held));
    if (has_room) all.push_back(std::move(held));
  }
  if (all.size() < wishes.size()) {
    for (const HeldShare& held : all) TRY(give_back(fd_, held));
    // Within the turn: one that ends from now on is among those that are waited for.
    TRY(find_others());
    return std::optional<std::vector<NodeShare>>();
  }
  TRY_ASSIGN([[maybe_unused]] const bool is_first, lock(fd_, F_WRLCK, kSteps + id_));
  std::vector<NodeShare> shares;
  for (HeldShare& held : all) shares.push_back(std::move(held.share));
  return std::optional(std::move(shares));
}

base::Status StepShares::find_others() {
  others_.clear();
  std::uint32_t steps = 0;
  if (::pread(fd_, &steps, sizeof steps, 0) < 0)
    return std::unexpected(base::system_error("read the number of steps", errno));
  for (std::uint32_t step = 0; step < steps; ++step) {
    struct flock request = {};
    request.l_type = F_WRLCK;
    request.l_whence = SEEK_SET;
    request.l_start = kSteps + step;
    request.l_len = 1;
    if (::fcntl(fd_, F_OFD_GETLK, &request) != 0)
      return std::unexpected(base::system_error("look for a step's share", errno));
    if (request.l_type != F_UNLCK) others_.push_back(step);
  }
  return {};
}

base::Result<bool> StepShares::wait_for_an_end(std::optional<std::int64_t> milliseconds) {
  if (ends_[0] < 0 && ::pipe2(ends_, O_CLOEXEC) != 0)
    return std::unexpected(base::system_error("pipe", errno));
  for (const std::uint32_t step : others_) {
    if (!awaited_.insert(step).second) continue;
    // A lock of its own: one of fd_ would go to the tasks of this step.
    const int own = ::open(fmt::format("/proc/self/fd/{}", fd_).c_str(), O_RDWR | O_CLOEXEC);
    if (own < 0) return std::unexpected(base::system_error("open the shares of steps", errno));
    if (const auto begun = begin_waiting(own, step, ends_[1]); !begun) return begun;
  }
  pollfd ended = {ends_[0], POLLIN, 0};
  const int timeout_ms =
      milliseconds ? static_cast<int>(std::clamp<std::int64_t>(*milliseconds, 0, INT_MAX)) : -1;
  int found = 0;
  do {
    found = ::poll(&ended, 1, timeout_ms);
  } while (found < 0 && errno == EINTR);
  if (found < 0) return std::unexpected(base::system_error("poll", errno));
  if (found == 0) return false;
  char byte = 0;
  if (::read(ends_[0], &byte, 1) < 0) return std::unexpected(base::system_error("read", errno));
  return true;
}

}  // namespace gpu_platform::shims
