#include "node/launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "node/cgroup.h"
#include "node/channel_refusal.h"
#include "node/launcher/attempts_on_disk.h"
#include "node/launcher/channels.h"
#include "node/launcher/children.h"
#include "node/launcher/container_cleaning.h"
#include "node/launcher/daemon_socket.h"
#include "node/launcher/driver_runs.h"
#include "node/launcher/file_opener.h"
#include "node/launcher/identities.h"
#include "node/launcher/launch_check.h"
#include "node/launcher/launcher_host.h"
#include "node/launcher/mps_servers.h"
#include "node/launcher/slice_keepers.h"
#include "node/owed_epilog.h"
#include "node/received_request.h"
#include "node/record.h"
#include "node/supervisor/attempt_report.h"
#include "os/clock.h"
#include "os/packet_socket.h"

namespace gpu_platform::node {

namespace {

constexpr std::size_t kMaxWaiting = 4096;

// Of two times to wait, of which -1 is for ever.
int sooner(int a, int b) {
  return a < 0 || b < 0 ? std::max(a, b) : std::min(a, b);
}

// Serves one daemon after the other. `host` is prepared.
class Launcher {
 public:
  Launcher(const LauncherOptions& options, LauncherHost& host)
      : o_(options),
        host_(host),
        attempts_(host.folders, host.confinement, host.token, host.boot_id, host.base_fd),
        check_(host),
        children_(options, host, listener_, socket_),
        channels_(options, host, attempts_, children_),
        cleaning_(options, host),
        driver_(options, host, children_),
        keepers_(options, host, attempts_, children_),
        mps_(host, attempts_, children_, [this](const Message& message) { answer(message); }),
        identities_(options.identities) {}

  // Returns why it cannot go on; empty: the only daemon has hung up.
  std::string run() {
    cleaning_.start();
    if (o_.socket_fd < 0) return listen_for_daemons();
    socket_ = o_.socket_fd;
    serve();
    mps_.leave();
    leave(host_);
    return {};
  }

 private:
  // ---- connections

  std::string listen_for_daemons() {
    if (std::string why = listener_.open(o_.listen_path, o_.client_uid); !why.empty()) return why;
    while (true) {
      socket_ = listener_.accept();
      if (socket_ < 0) return "accept at " + o_.listen_path + ": " + strerror(errno);
      if (listener_.may_connect(socket_)) serve();
      close(socket_);
    }
  }

  void serve() {
    greeted_ = false;
    while (serve_some()) {
    }
    for (const Waiting& order : waiting_) {
      if (order.fd >= 0) close(order.fd);
    }
    waiting_.clear();
    keepers_.end_all();
  }

  // Serves the messages that are there, or the next one. Returns false if the daemon is gone or was
  // sent away.
  bool serve_some() {
    std::vector<pollfd> handles{{socket_, POLLIN, 0}};
    identities_.watch(handles);
    keepers_.watch(handles);
    mps_.watch(handles);
    const int timeout_ms =
        sooner(mps_.timeout_ms(os::boot_ms()),
               sooner(identities_.timeout_ms(os::boot_ms()), keepers_.timeout_ms(os::boot_ms())));
    if (handles.size() > 1 || timeout_ms >= 0) {
      poll(handles.data(), handles.size(), timeout_ms);
      keepers_.work(os::boot_ms());
      mps_.work(os::boot_ms());
      if (identities_.work(os::boot_ms())) go_on_with_waiting();
      if (handles[0].revents == 0) return true;
    }
    const os::Packet packet = os::receive_packet(socket_, buffer_, sizeof buffer_);
    if (packet.kind == os::Packet::Kind::kClosed) return false;
    const auto message =
        packet.kind == os::Packet::Kind::kMessage ? decode(packet.bytes) : std::optional<Message>();
    const bool go_on =
        message ? handle(*message, packet.bytes, packet.fd) : refuse("not a known message");
    if (packet.fd >= 0) close(packet.fd);
    return go_on;
  }

  // ---- orders that wait for the lookup of their user

  struct Waiting {
    std::string packet;
    int fd = -1;
  };

  // False: too many are.
  bool keep_waiting(std::string_view packet, int fd) {
    if (waiting_.size() >= kMaxWaiting) return false;
    waiting_.push_back({std::string(packet), fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3)});
    return true;
  }

  void go_on_with_waiting() {
    for (Waiting& order : std::exchange(waiting_, {})) {
      const auto message = decode(order.packet);
      if (message) handle(*message, order.packet, order.fd);
      if (order.fd >= 0) close(order.fd);
    }
  }

  bool refuse(std::string why) {
    answer(Refused{std::move(why)});
    return false;
  }

  void answer(const Message& message, int fd = -1) {
    // A daemon that is gone is noticed at the next read.
    os::send_packet(socket_, encode(message), fd);
  }

  // False: hang up.
  bool handle(const Message& message, std::string_view packet, int fd) {
    if (const auto* hello = std::get_if<Hello>(&message)) return greet(*hello);
    if (!greeted_) return refuse("the first message must be Hello");
    if (const auto* launch_order = std::get_if<Launch>(&message)) {
      launch(*launch_order, packet, fd);
    } else if (const auto* stop_order = std::get_if<Stop>(&message)) {
      stop(*stop_order);
    } else if (const auto* limit_order = std::get_if<SetLimit>(&message)) {
      attempts_.signal_supervisor(limit_order->attempt, limit_signal_number(),
                                  limit_order->limit_ms);
    } else if (const auto* signal_order = std::get_if<SendSignal>(&message)) {
      attempts_.signal_supervisor(signal_order->attempt, send_signal_number(),
                                  signal_order->signal);
    } else if (const auto* warning = std::get_if<WarnOfMemory>(&message)) {
      attempts_.signal_supervisor(warning->attempt, warning_signal_number(), pack(*warning));
    } else if (const auto* kill_order = std::get_if<KillTree>(&message)) {
      answer(TreeState{kill_order->attempt, end_tree(kill_order->attempt)});
    } else if (const auto* forget_order = std::get_if<Forget>(&message)) {
      forget(*forget_order);
    } else if (const auto* removal = std::get_if<RemoveOutput>(&message)) {
      for (const model::JobId job : removal->jobs) attempts_.remove_output(job);
    } else if (const auto* channel_order = std::get_if<OpenChannel>(&message)) {
      open_channel(*channel_order, packet, fd);
    } else if (const auto* file_order = std::get_if<OpenFile>(&message)) {
      open_file(*file_order, packet, fd);
    } else if (const auto* driver_order = std::get_if<RunDriver>(&message)) {
      if (fd >= 0) driver_.start(*driver_order, fd);
    } else if (const auto* turns = std::get_if<TimeSlices>(&message)) {
      keepers_.take(*turns);
    } else if (const auto* mps_order = std::get_if<MpsServer>(&message)) {
      serve_mps(*mps_order, packet);
    } else if (const auto* idle = std::get_if<GpuIsIdle>(&message)) {
      keepers_.pass_on(*idle);
    } else {
      return refuse("a message that only a launcher sends");
    }
    return true;
  }

  bool greet(const Hello& hello) {
    if (hello.version != kProtocolVersion) {
      return refuse("this launcher has version " + std::to_string(kProtocolVersion) +
                    " of the protocol, not " + std::to_string(hello.version));
    }
    greeted_ = true;
    Welcome welcome;
    welcome.pid = static_cast<std::uint32_t>(getpid());
    welcome.isolation = host_.base_fd >= 0 ? Isolation::kCgroup : Isolation::kAdvisory;
    welcome.can_switch_user = geteuid() == 0;
    welcome.folder = host_.folders.path;
    welcome.detail = host_.base_fd >= 0 ? host_.base.path : host_.base.why;
    welcome.guards = host_.confinement.guards;
    answer(welcome, host_.notice_fd);
    mps_.daemon_came(os::boot_ms());
    return true;
  }

  // ---- the end of an attempt

  void stop(const Stop& order) {
    const StopSignal bits{order.without_grace, order.grace_ms, order.code};
    answer(StopSent{order.attempt,
                    attempts_.signal_supervisor(order.attempt, stop_signal_number(), pack(bits))});
  }

  // Returns whether nothing is left of it. A supervisor that was lost leaves us the site's epilog.
  bool end_tree(model::AttemptId attempt) {
    if (OwedEpilog::is_run(host_.folders.attempts, attempt)) return false;
    if (!attempts_.kill_tree(attempt)) return false;
    attempts_.sweep(attempt);
    return !runs_owed_epilog(attempt);
  }

  // Once at most: one that began with its supervisor has failed with it.
  bool runs_owed_epilog(model::AttemptId attempt) {
    const OpenRecord found = attempts_.look_at(attempt);
    if (found.holder != Holder::kNobody || !found.record.beginning || found.record.cleaned) {
      return false;
    }
    OwedEpilog owed(host_.folders.attempts, attempt);
    if (!owed.take()) return false;
    const std::optional<LaunchRequest> request = owed.request();
    const int record = open_below(host_.folders.attempts, attempt_name(attempt).c_str(), O_RDWR);
    const bool is_to_be_run = request && request->boot_id == host_.boot_id &&
                              !o_.hooks.epilog.empty() && !owed.has_begun();
    // If it cannot be started now, the daemon asks again.
    if (is_to_be_run && record >= 0 && flock(record, LOCK_EX) == 0) {
      const Child child =
          children_.start_lost_epilog(owed, attempt, *request, record, found.record.end);
      if (child.pidfd >= 0) close(child.pidfd);
    }
    if (owed.has_begun() && record >= 0) {
      AttemptReport(attempt, record, -1)
          .write(encode_slot(
              CleanedRecord{os::wall_now(), "its supervisor was lost while it ran, not repeated"}));
    }
    if (!is_to_be_run) owed.remove();
    if (record >= 0) close(record);
    return is_to_be_run;
  }

  void forget(const Forget& order) {
    bool has_containers = false;
    for (const auto& attempt : order.attempts) {
      has_containers = has_containers || attempts_.has_container_left(attempt);
      const bool is_forgotten = attempts_.forget(attempt);
      if (!is_forgotten) answer(ForgetRefused{attempt});
      // Of a supervisor that was killed.
      if (is_forgotten && !host_.container_client.empty()) {
        remove_engine_groups(host_.base.path + "/" + attempt_name(attempt));
      }
    }
    if (has_containers) {
      cleaning_.start();
    } else {
      cleaning_.start_if_due();
    }
  }

  // ---- launch

  void launch(const Launch& order, std::string_view packet, int fd) {
    std::string_view bytes = order.request;
    if (order.in_memory_file) bytes = map_request(fd);
    std::optional<LaunchRequest> request = decode_request(bytes);
    if (!request) {
      answer(LaunchFailed{order.attempt, "the request is damaged"});
    } else if (const auto why = check_start(*request, packet, fd)) {
      if (!why->empty()) answer(LaunchFailed{order.attempt, *why});
    } else {
      launch_once(order.attempt, *request);
    }
    if (order.in_memory_file) release_request(bytes);
  }

  // Nothing: it may be started, and its user is known. Empty: that is being asked for, and the
  // order will be handled again.
  std::optional<std::string> check_start(LaunchRequest& request, std::string_view packet, int fd) {
    if (std::string why = check_.run(request); !why.empty()) return why;
    Identities::Answer user = identities_.find(request.user.uid, os::boot_ms());
    if (user.kind == Identities::Answer::Kind::kRefused) return std::move(user.why);
    if (user.kind == Identities::Answer::Kind::kKnown) {
      request.user = std::move(user.user);
      return std::nullopt;
    }
    return keep_waiting(packet, fd) ? "" : "too many jobs wait for the user database";
  }

  void launch_once(model::AttemptId attempt, const LaunchRequest& request) {
    const std::string name = attempt_name(attempt);
    const int folder = host_.folders.attempts;
    const unsigned mode = o_.client_gid >= 0 ? 0640 : 0600;
    // Created here and only here, and only once: this is what makes a repeated order harmless.
    const int record = open_below(folder, name.c_str(), O_RDWR | O_CREAT | O_EXCL, mode);
    if (record < 0 && errno == EEXIST) return answer(Exists{attempt});
    std::string why = record < 0 ? "make the record " + name + ": " + strerror(errno) : "";
    if (why.empty()) why = start_supervisor(record, attempt, request);
    if (!why.empty()) {
      if (record >= 0) unlinkat(folder, name.c_str(), 0);
      answer(LaunchFailed{attempt, why});
    }
    if (record >= 0) close(record);
  }

  std::string start_supervisor(int record, model::AttemptId attempt, const LaunchRequest& request) {
    // The lock is taken before the fork and inherited: from here on it is free only when no process
    // of the supervisor is left. (A test of the lock shares it for a moment, hence no LOCK_NB.)
    if (flock(record, LOCK_EX) != 0) return std::string("lock the record: ") + strerror(errno);
    const Child child = children_.start_supervisor(attempt, request, record);
    if (child.pid < 0) return std::string("start a supervisor: ") + strerror(errno);
    answer(Launched{attempt, static_cast<std::uint32_t>(child.pid)}, child.pidfd);
    close(child.pidfd);
    return {};
  }

  // ---- MPS

  // Those of a user are carried out in their order: one without jobs waits, too.
  void serve_mps(const MpsServer& order, std::string_view packet) {
    const Identities::Answer user = identities_.find(order.uid, os::boot_ms());
    if (user.kind == Identities::Answer::Kind::kLater) {
      if (!keep_waiting(packet, -1)) mps_.refuse(order, "too many jobs wait for the user database");
    } else if (user.kind == Identities::Answer::Kind::kRefused && !order.jobs.empty()) {
      mps_.refuse(order, user.why);
    } else {
      mps_.take(order, user.user);
    }
  }

  // ---- channels and files

  void open_channel(const OpenChannel& order, std::string_view packet, int fd) {
    if (fd < 0) return;
    const auto record = channels_.find_running(order.attempt, fd);
    if (!record) return;
    if (order.attach) return channels_.hand_to_supervisor(order.attempt, fd);
    const Identities::Answer user = identities_.find(record->beginning->uid, os::boot_ms());
    if (user.kind == Identities::Answer::Kind::kRefused) return refuse_channel(fd, user.why);
    if (user.kind == Identities::Answer::Kind::kKnown) {
      return channels_.start_relay(order.attempt, *record, user.user, fd);
    }
    if (!keep_waiting(packet, fd)) refuse_channel(fd, "too many wait for the user database");
  }

  void open_file(const OpenFile& order, std::string_view packet, int fd) {
    if (fd < 0) return;
    const Identities::Answer user = identities_.find(order.uid, os::boot_ms());
    if (user.kind == Identities::Answer::Kind::kKnown) {
      files_.open(user.user, order.path, fd);
    } else if (user.kind == Identities::Answer::Kind::kRefused || !keep_waiting(packet, fd)) {
      os::send_packet(fd, encode_opened_file({0, user.why}));
    }
  }

  const LauncherOptions& o_;
  LauncherHost& host_;
  int socket_ = -1;  // to the daemon
  DaemonSocket listener_;
  AttemptsOnDisk attempts_;
  LaunchCheck check_;
  Children children_;
  Channels channels_;
  ContainerCleaning cleaning_;
  DriverRuns driver_;
  SliceKeepers keepers_;
  MpsServers mps_;
  Identities identities_;
  FileOpener files_;
  std::vector<Waiting> waiting_;
  bool greeted_ = false;
  char buffer_[kMaxMessage];
};

}  // namespace

int run_launcher(const LauncherOptions& options, std::string& error) {
  LauncherHost host;
  error = prepare(options, host);
  if (error.empty()) error = Launcher(options, host).run();
  return error.empty() ? 0 : 1;
}

}  // namespace gpu_platform::node
