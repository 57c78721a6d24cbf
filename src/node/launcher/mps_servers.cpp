#include "node/launcher/mps_servers.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "node/syscalls.h"
#include "os/clock.h"
#include "os/packet_socket.h"

namespace gpu_platform::node {

namespace {

// A keeper that ends sooner than this is not started again at once.
constexpr std::int64_t kMpsSettledMs = 1000;
// Between two attempts to remove what a process does not leave.
constexpr std::int64_t kRemovalRetryMs = 5000;
// In which a daemon names the MPS daemons that its jobs use.
constexpr std::int64_t kNamedMs = 60'000;
// In which a keeper that was told to end its daemon has done so when the launcher ends.
constexpr int kLastMs = 5000;

bool is_gone(int pidfd, int timeout_ms) {
  pollfd ended{pidfd, POLLIN, 0};
  return poll(&ended, 1, timeout_ms) == 1;
}

}  // namespace

MpsServers::MpsServers(const LauncherHost& host, const AttemptsOnDisk& attempts, Children& children,
                       std::function<void(const Message&)> tell)
    : host_(host),
      attempts_(attempts),
      children_(children),
      tell_(std::move(tell)),
      places_({std::string(kMpsRoot), host.token, host.base_fd}) {
  if (refusal(host).empty()) left_ = places_.find_living();
}

void MpsServers::leave() {
  for (auto& [name, keeper] : keepers_) {
    const bool is_ending = keeper.wanted.jobs.empty();
    const bool has_gone =
        keeper.process.pid < 0 || (is_ending && is_gone(keeper.process.pidfd, kLastMs));
    close_handles(keeper);
    if (is_ending && has_gone) places_.remove(name);
  }
  keepers_.clear();
}

std::string MpsServers::refusal(const LauncherHost& host) {
  if (geteuid() != 0) return "MPS needs a node part with root's rights";
  return host.base_fd >= 0 ? "" : "MPS needs cgroups of version 2 for jobs: " + host.base.why;
}

void MpsServers::take(const MpsServer& order, const Identity& user) {
  if (const std::string why = refusal(host_); !why.empty()) return refuse(order, why);
  const std::string name = mps_name(order.gpu, order.uid);
  if (order.jobs.empty()) return end(name, order);
  left_.erase(name);
  Keeper& keeper = keepers_[name];
  keeper.wanted = order;
  keeper.user = user;
  keeper.is_named = true;
  if (keeper.process.pid >= 0) return send(keeper);
  start(name, keeper, os::boot_ms());
}

// What has no keeper is removed by work().
void MpsServers::end(const std::string& name, const MpsServer& order) {
  const bool was_left = left_.erase(name) != 0;
  const auto known = keepers_.find(name);
  if (known != keepers_.end() && known->second.process.pid >= 0) {
    known->second.wanted = order;
    return send(known->second);
  }
  if (was_left || known != keepers_.end()) keepers_[name] = {.wanted = order};
  refuse(order, "it was ended, because no job needs it");
}

void MpsServers::daemon_came(std::int64_t now_ms) {
  for (auto& [name, keeper] : keepers_) keeper.is_named = false;
  unnamed_end_at_ms_ = now_ms + kNamedMs;
}

void MpsServers::watch(std::vector<pollfd>& handles) const {
  for (const auto& [name, keeper] : keepers_) {
    if (keeper.process.pid < 0) continue;
    handles.push_back({keeper.process.pidfd, POLLIN, 0});
    handles.push_back({keeper.socket, POLLIN, 0});
  }
}

int MpsServers::timeout_ms(std::int64_t now_ms) const {
  std::int64_t timeout = -1;
  const auto include = [&](std::int64_t at_ms) {
    const std::int64_t left = std::max<std::int64_t>(at_ms - now_ms, 0);
    timeout = timeout < 0 ? left : std::min(timeout, left);
  };
  for (const auto& [name, keeper] : keepers_) {
    if (keeper.process.pid < 0) include(keeper.start_at_ms);
  }
  if (unnamed_end_at_ms_ >= 0) include(unnamed_end_at_ms_);
  return static_cast<int>(timeout);
}

void MpsServers::work(std::int64_t now_ms) {
  if (unnamed_end_at_ms_ >= 0 && now_ms >= unnamed_end_at_ms_) end_unnamed();
  for (auto it = keepers_.begin(); it != keepers_.end();) {
    auto& [name, keeper] = *it;
    if (keeper.process.pid >= 0) {
      pass_on(keeper);
      if (is_gone(keeper.process.pidfd, 0)) has_ended(keeper, now_ms);
    }
    const bool is_due = keeper.process.pid < 0 && now_ms >= keeper.start_at_ms;
    if (is_due && keeper.wanted.jobs.empty()) {
      it = is_removed(name, keeper, now_ms) ? keepers_.erase(it) : std::next(it);
      continue;
    }
    if (is_due) start(name, keeper, now_ms);
    ++it;
  }
}

void MpsServers::start(const std::string& name, Keeper& keeper, std::int64_t now_ms) {
  keeper.started_ms = now_ms;
  keeper.start_at_ms = now_ms + kMpsSettledMs;
  const MpsPlaces::Place place = places_.make(name, keeper.user);
  if (!place.why.empty()) return refuse(keeper.wanted, place.why);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return refuse(keeper.wanted, std::string("make a socket: ") + strerror(errno));
  }
  keeper.socket = ends[0];
  children_.keep_private(keeper.socket);
  MpsKeeperOptions options;
  options.socket = ends[1];
  options.folder = place.folder.get();
  options.cgroup = place.cgroup.get();
  options.path = mps_folder(host_.token, keeper.wanted.gpu, keeper.wanted.uid);
  options.user = keeper.user;
  options.has_own_memory = keeper.wanted.private_folders && host_.confinement.private_folders;
  keeper.process = children_.start_mps_keeper(options);
  const int error = errno;
  close(ends[1]);
  if (keeper.process.pid >= 0) return send(keeper);
  close_handles(keeper);
  refuse(keeper.wanted, std::string("start the keeper of an MPS daemon: ") + strerror(error));
}

// One that does not read for so long is no keeper any more.
void MpsServers::send(Keeper& keeper) const {
  if (os::send_packet(keeper.socket, encode(keeper.wanted))) return;
  signal_pidfd(keeper.process.pidfd, SIGKILL);
}

void MpsServers::pass_on(const Keeper& keeper) {
  while (true) {
    const os::Packet packet =
        os::receive_packet(keeper.socket, buffer_, sizeof buffer_, MSG_DONTWAIT);
    if (packet.fd >= 0) close(packet.fd);
    if (packet.kind != os::Packet::Kind::kMessage) return;
    const auto message = decode(packet.bytes);
    if (message && std::holds_alternative<MpsState>(*message)) tell_(*message);
  }
}

// It has ended its daemon, or was killed.
void MpsServers::has_ended(Keeper& keeper, std::int64_t now_ms) {
  pass_on(keeper);
  close_handles(keeper);
  const bool was_settled = now_ms - keeper.started_ms >= kMpsSettledMs;
  const bool waits = !was_settled && !keeper.wanted.jobs.empty();
  keeper.start_at_ms = waits ? now_ms + kMpsSettledMs : now_ms;
}

// A process that does not end is asked for again.
bool MpsServers::is_removed(const std::string& name, Keeper& keeper, std::int64_t now_ms) {
  if (places_.remove(name)) return true;
  keeper.start_at_ms = now_ms + kRemovalRetryMs;
  return false;
}

void MpsServers::close_handles(Keeper& keeper) const {
  if (keeper.socket >= 0) children_.close_private(keeper.socket);
  if (keeper.process.pidfd >= 0) close(keeper.process.pidfd);
  keeper.socket = -1;
  keeper.process = {};
}

void MpsServers::end_unnamed() {
  unnamed_end_at_ms_ = -1;
  for (auto& [name, keeper] : keepers_) {
    if (keeper.is_named || keeper.wanted.jobs.empty() || has_living_job(keeper)) continue;
    keeper.wanted.jobs.clear();
    if (keeper.process.pid >= 0) send(keeper);
  }
  for (const std::string& name : std::exchange(left_, {})) keepers_[name] = {};
}

bool MpsServers::has_living_job(const Keeper& keeper) const {
  return std::ranges::any_of(keeper.wanted.jobs, [this](const MpsJob& job) {
    return attempts_.look_at(job.attempt).holder == Holder::kSupervisor;
  });
}

void MpsServers::refuse(const MpsServer& order, const std::string& why) const {
  MpsState state;
  state.gpu = order.gpu;
  state.uid = order.uid;
  for (const MpsJob& job : order.jobs) state.jobs.push_back(job.attempt);
  state.why = why;
  tell_(state);
}

}  // namespace gpu_platform::node
