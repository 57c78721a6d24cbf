#include "node/launcher/driver_runs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "node/driver_rules.h"
#include "node/folders/node_folders.h"
#include "os/packet_socket.h"

namespace gpu_platform::node {

namespace {

constexpr std::size_t kMaxWatchers = 16;

// Those that only look at GPUs, and what has to do with emulated boards, need no right of root's.
bool needs_root(const RunDriver& order) {
  const bool writes = order.verb == DriverVerb::kReset || order.verb == DriverVerb::kPower;
  return writes && !order.board;
}

}  // namespace

DriverRuns::~DriverRuns() {
  for (const int watcher : watchers_) close(watcher);
}

void DriverRuns::forget_ended() {
  std::erase_if(watchers_, [](int watcher) {
    pollfd ended{watcher, POLLIN, 0};
    const bool is_over = poll(&ended, 1, 0) == 1;
    if (is_over) close(watcher);
    return is_over;
  });
}

// A daemon that started us has our rights, and without root's the driver itself refuses. For the
// daemon of a service only root's rules count, and they are read each time.
std::string DriverRuns::refusal_of_order(const RunDriver& order) const {
  if (host_.driver_program.empty()) {
    return "gpu-platform-driver is not installed beside the launcher";
  }
  // An emulated board is the daemon's own, and so are the rights that are used for it.
  if (order.board) return {};
  if (!o_.driver_rules.empty()) return refusal_of_file(o_.driver_rules, order.verb);
  if (o_.listen_path.empty() || !needs_root(order) || geteuid() != 0) return {};
  return "the launcher has no rules for it: give gpu-platform-launcher.service --driver FILE";
}

void DriverRuns::start(const RunDriver& order, int socket) {
  const auto fail = [&](const std::string& why) {
    os::send_packet(socket, encode_driver_answer(untried_answer(order.gpus, why)));
  };
  forget_ended();
  if (watchers_.size() >= kMaxWatchers) return fail("the driver is busy with other requests");
  if (const std::string why = refusal_of_order(order); !why.empty()) {
    os::send_packet(socket, encode_driver_answer(refused_answer(order.gpus, why)));
    return;
  }
  DriverWatch watch;
  watch.order = &order;
  watch.program = host_.driver_program;
  watch.socket = socket;
  watch.lock = open_below(host_.folders.run, "driver.lock", O_RDWR | O_CREAT, 0600);
  const Identity user{
      o_.client_uid, static_cast<std::uint32_t>(std::max<std::int64_t>(o_.client_gid, 0)), {}, {}};
  const bool leaves_root = geteuid() == 0 && o_.client_uid != 0 && !needs_root(order);
  if (leaves_root) watch.user = &user;
  if (leaves_root && o_.client_gid < 0) return fail("the launcher was not told the daemon's group");
  const Child child = children_.start_driver_watch(watch);
  if (child.pid < 0) fail(std::string("start its program: ") + strerror(errno));
  if (child.pidfd >= 0) watchers_.push_back(child.pidfd);
  if (watch.lock >= 0) close(watch.lock);
}

}  // namespace gpu_platform::node
