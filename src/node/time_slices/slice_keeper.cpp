#include "node/time_slices/slice_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "node/boot_timer.h"
#include "node/cgroup_freezer.h"
#include "node/protocol.h"
#include "node/time_slices/wheel/turn_wheel.h"
#include "os/clock.h"
#include "os/packet_socket.h"

namespace gpu_platform::node {

namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;

// A cgroup that takes turns, and what tells of its changes.
struct Watched {
  int cgroup = -1;
  int events = -1;  // its cgroup.events
  int marks = -1;   // the watch of its attributes; -1: they are looked at only when all are
};

class SliceKeeper {
 public:
  explicit SliceKeeper(const SliceKeeperOptions& options) : o_(options) {}
  SliceKeeper(const SliceKeeper&) = delete;
  SliceKeeper& operator=(const SliceKeeper&) = delete;
  ~SliceKeeper() {
    for (const auto& [attempt, member] : members_) let_be(member);
    for (const int fd : {signals_, marks_, timer_.handle()}) {
      if (fd >= 0) close(fd);
    }
  }

  void run() {
    if (!prepare()) return say(std::string("time slices: ") + strerror(errno));
    while (!is_over_) {
      wait();
      take_signals();
      take_orders();
      look_at_all();
      wheel_.time_passed(os::boot_ns());
      act();
    }
  }

 private:
  bool prepare() {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    signals_ = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    marks_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    return signals_ >= 0 && timer_.open();
  }

  void wait() {
    std::vector<pollfd> handles{{o_.socket, POLLIN, 0},
                                {signals_, POLLIN, 0},
                                {timer_.handle(), POLLIN, 0},
                                {marks_, POLLIN, 0}};
    for (const auto& [attempt, member] : members_) handles.push_back({member.events, POLLPRI, 0});
    timer_.set(wheel_.wake_at());
    poll(handles.data(), handles.size(), -1);
    if (handles[2].revents != 0) timer_.quiet();
    if (handles[3].revents != 0) forget_marks();
  }

  // What they say is found by looking.
  void forget_marks() const {
    alignas(inotify_event) char buffer[4096];
    while (read(marks_, buffer, sizeof buffer) > 0) {
    }
  }

  void take_signals() {
    signalfd_siginfo info;
    while (read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const auto number = static_cast<int>(info.ssi_signo);
      is_over_ |= number == SIGTERM || number == SIGINT || number == SIGHUP;
    }
  }

  // ---- the launcher's orders

  void take_orders() {
    while (!is_over_) {
      const os::Packet packet =
          os::receive_packet(o_.socket, buffer_, sizeof buffer_, MSG_DONTWAIT);
      if (packet.fd >= 0) close(packet.fd);
      is_over_ |= packet.kind == os::Packet::Kind::kClosed;
      if (packet.kind != os::Packet::Kind::kMessage) return;
      const auto message = decode(packet.bytes);
      if (!message) continue;
      if (const auto* const order = std::get_if<TimeSlices>(&*message)) take(*order);
      if (std::holds_alternative<GpuIsIdle>(*message)) give_turn_on();
    }
  }

  void give_turn_on() {
    wheel_.gpu_is_idle(os::boot_ns());
    act();
  }

  void take(const TimeSlices& order) {
    gpu_ = order.gpu;
    std::vector<TurnMember> wanted;
    std::map<model::AttemptId, Watched> kept;
    for (const TimeSliceJob& job : order.jobs) {
      if (kept.contains(job.attempt)) continue;
      const auto known = members_.extract(job.attempt);
      Watched member = known ? known.mapped() : open(job.attempt);
      if (member.cgroup < 0) continue;  // it has just ended
      kept.emplace(job.attempt, member);
      wanted.push_back({job.attempt, job.weight});
    }
    std::swap(members_, kept);
    wheel_.set_members(wanted, static_cast<std::int64_t>(order.slice_ms) * kNsPerMs, os::boot_ns());
    for (const auto& [attempt, member] : kept) let_be(member);
    act();  // those that left were thawed; the wheel's word to it finds nothing
  }

  Watched open(model::AttemptId attempt) const {
    Watched member;
    member.cgroup = o_.open_cgroup(attempt);
    if (member.cgroup < 0) return member;
    member.events = openat(member.cgroup, "cgroup.events", O_RDONLY | O_CLOEXEC);
    if (member.events < 0) {
      close(member.cgroup);
      return {};
    }
    const std::string path = "/proc/self/fd/" + std::to_string(member.cgroup);
    if (marks_ >= 0) member.marks = inotify_add_watch(marks_, path.c_str(), IN_ATTRIB);
    return member;
  }

  // It takes no turns any more: it is awake.
  void let_be(const Watched& member) const {
    thaw_cgroup(member.cgroup);
    if (member.marks >= 0) inotify_rm_watch(marks_, member.marks);
    close(member.events);
    close(member.cgroup);
  }

  // ---- the cgroups

  // Each is looked at whatever has woken us: a look costs microseconds, and nothing is missed.
  void look_at_all() {
    std::vector<model::AttemptId> gone;
    for (const auto& [attempt, member] : members_) {
      if (!look_at(attempt, member)) gone.push_back(attempt);
    }
    for (const model::AttemptId attempt : gone) {
      let_be(members_.at(attempt));
      members_.erase(attempt);
      wheel_.is_gone(attempt, os::boot_ns());
    }
  }

  // Returns false if it is there no more.
  bool look_at(model::AttemptId attempt, const Watched& member) {
    const CgroupBody body = look_at_cgroup(member.cgroup, member.events);
    if (!body.is_there) return false;
    wheel_.is_empty(attempt, body.is_empty, os::boot_ns());
    act();
    wheel_.is_held(attempt, is_held_awake(member.cgroup), os::boot_ns());
    act();
    if (!wheel_.is_to_stand_still(attempt)) return true;
    // What we have told it since we looked is not in what we saw.
    const CgroupBody now = look_at_cgroup(member.cgroup, member.events);
    if (!now.is_there) return false;
    if (!now.is_to_stand_still) {
      wheel_.was_thawed(attempt, os::boot_ns());
    } else if (now.stands_still) {
      wheel_.stands_still(attempt, os::boot_ns());
    }
    act();
    return true;
  }

  // ---- what the wheel wants

  void act() {
    while (const auto action = wheel_.take_action()) {
      const auto found = members_.find(action->attempt);
      if (found != members_.end()) carry_out(*action, found->second);
    }
  }

  void carry_out(const TurnAction& action, const Watched& member) {
    switch (action.kind) {
      case TurnAction::Kind::kThaw:
        thaw_cgroup(member.cgroup);
        return;
      case TurnAction::Kind::kFreeze:
        freeze_cgroup(member.cgroup);
        // Who held it before this has thawed it in vain.
        if (is_held_awake(member.cgroup)) thaw_cgroup(member.cgroup);
        return;
      case TurnAction::Kind::kTellWakeful:
        say("job " + attempt_name(action.attempt) + " on " + gpu_ +
            " cannot be frozen at the end of its turn; the others go on beside it");
        return;
    }
  }

  void say(const std::string& line) const {
    if (o_.log_fd >= 0) dprintf(o_.log_fd, "gpu-platform-node: %s\n", line.c_str());
  }

  const SliceKeeperOptions& o_;
  TurnWheel wheel_;
  std::map<model::AttemptId, Watched> members_;
  std::string gpu_;
  BootTimer timer_;
  int signals_ = -1;
  int marks_ = -1;
  bool is_over_ = false;
  char buffer_[kMaxMessage];
};

}  // namespace

void run_slice_keeper(const SliceKeeperOptions& options) {
  SliceKeeper(options).run();
}

}  // namespace gpu_platform::node
