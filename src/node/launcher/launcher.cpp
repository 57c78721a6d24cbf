#include "node/launcher/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "node/cgroup.h"
#include "node/channel_refusal.h"
#include "node/confinement.h"
#include "node/packet_socket.h"
#include "node/process_tree.h"
#include "node/received_request.h"
#include "node/record.h"
#include "node/relay/relay.h"
#include "node/small_file.h"
#include "node/supervisor/session_socket.h"
#include "node/supervisor/supervisor.h"
#include "node/syscalls.h"

namespace gpu_platform::node {

namespace {

// A record that is still locked has a living supervisor.
enum class Holder { kSupervisor, kNobody, kNoRecord };

struct OpenRecord {
  Holder holder = Holder::kNoRecord;
  Record record;
};

class Launcher {
 public:
  explicit Launcher(const LauncherOptions& options) : o_(options) {}

  int run(std::string& error) {
    if (!set_up()) {
      error = std::move(error_);
      return 1;
    }
    if (o_.socket_fd >= 0) {
      socket_ = o_.socket_fd;
      serve();
      leave_confinement(confinement_);
      leave_cgroup_base(base_);
      return 0;
    }
    listen_for_daemons();
    error = std::move(error_);
    return 1;
  }

 private:
  // ---- set-up

  bool failed(std::string_view what, const std::string& path) {
    error_ = std::string(what) + " " + path + ": " + strerror(errno);
    return false;
  }

  bool set_up() {
    error_ = objection_to(o_.hooks);
    if (!error_.empty()) return false;
    umask(0);  // modes are written out where files are made
    set_signals();
    // The daemon makes its FIFO there.
    if (!make_folder(o_.root + "/run", o_.client_uid) || !take_lock()) return false;
    if (!make_folder(attempts_dir(o_.root)) || !make_folder(o_.root + "/output")) return false;
    struct stat about{};
    char* const real = realpath(o_.root.c_str(), nullptr);
    if (real == nullptr || stat(real, &about) != 0) return failed("find", o_.root);
    const std::string token = root_token(real, about.st_dev, about.st_ino);
    base_ = make_cgroup_base(token, o_.jobs_cgroup);
    confinement_ = find_confinement({real, token, base_.path, base_.why, o_.jobs_cgroup});
    free(real);
    if (!base_.path.empty()) {
      base_fd_ = open(base_.path.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC);
      if (base_fd_ < 0) return failed("open", base_.path);
    }
    boot_id_ = read_small_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id");
    if (!boot_id_.empty() && boot_id_.back() == '\n') boot_id_.pop_back();
    protect_from_oom();
    let_children_vanish();
    remove_lost_folders(confinement_);
    return true;
  }

  // Orders to supervisors come as a queued signal and may come before a new supervisor is ready: it
  // must find them pending, so they are blocked here already. SIGPIPE would end us where a write
  // can fail.
  static void set_signals() {
    for (int signal = 1; signal <= SIGRTMAX; ++signal) reset_signal(signal);
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int ending : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigdelset(&blocked, ending);
    sigprocmask(SIG_SETMASK, &blocked, nullptr);
  }

  // Supervisors are watched by handle, never waited for. Set once the set-up's own children are
  // done.
  static void let_children_vanish() {
    struct sigaction action{};
    action.sa_handler = SIG_DFL;
    action.sa_flags = SA_NOCLDWAIT;
    sigaction(SIGCHLD, &action, nullptr);
  }

  bool make_folder(const std::string& path, uid_t owner = static_cast<uid_t>(-1)) {
    const bool shared = o_.client_gid >= 0;
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return failed("make", path);
    if (!shared) return true;
    // Set-group-id: what is made inside belongs to the group too.
    if (chown(path.c_str(), owner, static_cast<gid_t>(o_.client_gid)) != 0 ||
        chmod(path.c_str(), 02750) != 0) {
      return failed("share", path);
    }
    return true;
  }

  bool take_lock() {
    const std::string path = launcher_lock_path(o_.root);
    lock_fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock_fd_ < 0) return failed("open", path);
    while (flock(lock_fd_, LOCK_EX) != 0) {
      if (errno != EINTR) return failed("lock", path);
    }
    return true;
  }

  // A supervisor that the kernel kills for memory leaves a job whose end nobody can know; jobs get
  // back what we were given.
  void protect_from_oom() {
    const std::string own = read_small_file(AT_FDCWD, "/proc/self/oom_score_adj");
    if (own.empty() || !write_small_file(AT_FDCWD, "/proc/self/oom_score_adj", "-900")) return;
    job_oom_score_ = own;
  }

  // ---- connections

  void listen_for_daemons() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (o_.listen_path.size() >= sizeof address.sun_path) {
      error_ = "the path of the socket is too long: " + o_.listen_path;
      return;
    }
    memcpy(address.sun_path, o_.listen_path.data(), o_.listen_path.size());
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    unlink(o_.listen_path.c_str());  // of a predecessor: we hold the lock
    if (listener < 0 ||
        bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        chown(o_.listen_path.c_str(), o_.client_uid, static_cast<gid_t>(-1)) != 0 ||
        chmod(o_.listen_path.c_str(), 0600) != 0 || listen(listener, 4) != 0) {
      failed("listen at", o_.listen_path);
      return;
    }
    listener_ = listener;
    while (true) {
      socket_ = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket_ < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
      if (socket_ < 0) {
        failed("accept at", o_.listen_path);
        return;
      }
      if (may_connect()) serve();
      close(socket_);
    }
  }

  bool may_connect() const {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
    return peer.uid == 0 || peer.uid == o_.client_uid;
  }

  void serve() {
    greeted_ = false;
    while (true) {
      const Packet packet = receive_packet(socket_, buffer_, sizeof buffer_);
      if (packet.kind == Packet::Kind::kClosed) break;
      const auto message =
          packet.kind == Packet::Kind::kMessage ? decode(packet.bytes) : std::optional<Message>();
      const bool go_on = message ? handle(*message, packet.fd) : refuse("not a message we know");
      if (packet.fd >= 0) close(packet.fd);
      if (!go_on) break;
    }
    if (notice_fd_ >= 0) close(notice_fd_);
    notice_fd_ = -1;
  }

  bool refuse(std::string why) {
    answer(Refused{std::move(why)});
    return false;
  }

  void answer(const Message& message, int fd = -1) {
    // A daemon that is gone is noticed at the next read.
    send_packet(socket_, encode(message), fd);
  }

  // False: hang up.
  bool handle(const Message& message, int fd) {
    if (const auto* hello = std::get_if<Hello>(&message)) return greet(*hello);
    if (!greeted_) return refuse("the first message must be Hello");
    if (const auto* launch_order = std::get_if<Launch>(&message)) {
      launch(*launch_order, fd);
    } else if (const auto* stop_order = std::get_if<Stop>(&message)) {
      stop(*stop_order);
    } else if (const auto* limit_order = std::get_if<SetLimit>(&message)) {
      signal_supervisor(limit_order->attempt, limit_signal_number(), limit_order->limit_ms);
    } else if (const auto* kill_order = std::get_if<KillTree>(&message)) {
      const bool empty = kill_tree(kill_order->attempt);
      if (empty) sweep(kill_order->attempt);
      answer(TreeState{kill_order->attempt, empty});
    } else if (const auto* forget_order = std::get_if<Forget>(&message)) {
      for (const auto& attempt : forget_order->attempts) forget(attempt);
    } else if (const auto* channel_order = std::get_if<OpenChannel>(&message)) {
      open_channel(*channel_order, fd);
    } else {
      return refuse("a message that only a launcher sends");
    }
    return true;
  }

  bool greet(const Hello& hello) {
    if (hello.version != kProtocolVersion) {
      return refuse("this launcher speaks version " + std::to_string(kProtocolVersion) +
                    " of the protocol, not " + std::to_string(hello.version));
    }
    if (notice_fd_ < 0) {
      notice_fd_ =
          open(notice_fifo_path(o_.root).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    }
    greeted_ = true;
    Welcome welcome;
    welcome.pid = static_cast<std::uint32_t>(getpid());
    welcome.isolation = base_fd_ >= 0 ? Isolation::kCgroup : Isolation::kAdvisory;
    welcome.can_switch_user = geteuid() == 0;
    welcome.detail = base_fd_ >= 0 ? base_.path : base_.why;
    welcome.guards = confinement_.guards;
    answer(welcome);
    return true;
  }

  // ---- launch

  void launch(const Launch& order, int fd) {
    const std::string path = record_path(o_.root, order.attempt);
    const mode_t mode = o_.client_gid >= 0 ? 0640 : 0600;
    // Created here and only here, and only once: this is what makes a repeated order harmless.
    const int record = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (record < 0) {
      if (errno == EEXIST) return answer(Exists{order.attempt});
      return answer(LaunchFailed{order.attempt, "make " + path + ": " + strerror(errno)});
    }
    const std::string why = launch_with(record, order, fd);
    if (!why.empty()) {
      unlink(path.c_str());
      answer(LaunchFailed{order.attempt, why});
    }
    close(record);
  }

  // Empty when a supervisor was made, else why not.
  std::string launch_with(int record, const Launch& order, int fd) {
    std::string_view bytes = order.request;
    if (order.in_memory_file) bytes = map_request(fd);
    const std::optional<LaunchRequest> request = decode_request(bytes);
    std::string why = request ? objection_to(*request, rules()) : "the request is damaged";
    if (why.empty()) why = fork_supervisor(record, order.attempt, *request);
    if (order.in_memory_file) release_request(bytes);
    return why;
  }

  StartRules rules() const { return {boot_id_, o_.refuse_root_jobs}; }

  std::string fork_supervisor(int record, model::AttemptId attempt, const LaunchRequest& request) {
    // Taken before the fork and inherited: from here on it is free only when nobody is left.
    // (Whoever tests the lock shares it for a moment, hence no LOCK_NB.)
    if (flock(record, LOCK_EX) != 0) return std::string("lock the record: ") + strerror(errno);
    prepare_for(confinement_, request);
    int pidfd = -1;
    const int pid = fork_with_pidfd(&pidfd);
    if (pid == 0) become_supervisor(attempt, request, record);
    if (pid < 0) return std::string("start a supervisor: ") + strerror(errno);
    answer(Launched{attempt, static_cast<std::uint32_t>(pid)}, pidfd);
    close(pidfd);
    return {};
  }

  [[noreturn]] void become_supervisor(model::AttemptId attempt, const LaunchRequest& request,
                                      int record) {
    leave_launcher();
    SupervisorOptions options;
    options.attempt = attempt;
    options.request = &request;
    options.root = o_.root;
    options.cgroup_base = base_.path;
    options.base_fd = base_fd_;
    options.confinement = &confinement_;
    options.record_fd = record;
    options.notice_fd = notice_fd_;
    options.oom_score = job_oom_score_.empty() ? nullptr : job_oom_score_.c_str();
    options.gpu_register = o_.gpu_register;
    options.hooks = &o_.hooks;
    options.title = o_.title;
    run_supervisor(options);
  }

  // What a child of ours must not keep.
  void leave_launcher() {
    close(socket_);  // the daemon must see when the launcher is gone
    close(lock_fd_);
    if (listener_ >= 0) close(listener_);
    // Whoever reads what the daemon prints must not wait for the end of its jobs.
    if (o_.error_fd >= 0) close(o_.error_fd);
  }

  // ---- channels

  void open_channel(const OpenChannel& order, int fd) {
    if (fd < 0) return;
    const model::AttemptId attempt = order.attempt;
    const OpenRecord found = look_at(attempt);
    const bool is_running = found.holder == Holder::kSupervisor && found.record.beginning &&
                            found.record.started && !found.record.end;
    if (!is_running) return refuse_channel(fd, "the job has just ended");
    if (order.attach) return hand_to_supervisor(attempt, fd);
    int pidfd = -1;
    const int pid = fork_with_pidfd(&pidfd);
    if (pid == 0) become_relay(attempt, found.record, fd);
    if (pid < 0) return refuse_channel(fd, std::string("start a relay: ") + strerror(errno));
    close(pidfd);
  }

  void hand_to_supervisor(model::AttemptId attempt, int channel) const {
    const int session = connect_to_session(o_.root, attempt);
    const bool is_handed = session >= 0 && send_packet(session, "attach", channel);
    if (!is_handed) refuse_channel(channel, "the job has just ended, or takes no input");
    if (session >= 0) close(session);
  }

  [[noreturn]] void become_relay(model::AttemptId attempt, const Record& record, int channel) {
    RelayOptions options;
    // A channel ends soon after the daemon, so that a reader of the log need not wait for it.
    options.log_fd = o_.error_fd < 0 ? -1 : fcntl(o_.error_fd, F_DUPFD_CLOEXEC, 3);
    leave_launcher();
    if (notice_fd_ >= 0) close(notice_fd_);
    options.attempt = attempt;
    options.record = record;
    options.rules = rules();
    options.limits = &confinement_.limits;
    options.channel = channel;
    options.oom_score = job_oom_score_.empty() ? nullptr : job_oom_score_.c_str();
    options.root = o_.root;
    options.gpu_register = o_.gpu_register;
    options.title = o_.title;
    run_relay(options);
  }

  // ---- attempts that exist

  OpenRecord look_at(model::AttemptId attempt) const {
    OpenRecord found;
    const int fd = open(record_path(o_.root, attempt).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return found;
    std::string file(kRecordSize, '\0');
    const ssize_t got = pread(fd, file.data(), file.size(), 0);
    if (got == static_cast<ssize_t>(kRecordSize)) found.record = decode_record(file);
    found.holder = flock(fd, LOCK_SH | LOCK_NB) == 0 ? Holder::kNobody : Holder::kSupervisor;
    close(fd);
    return found;
  }

  void stop(const Stop& order) {
    const StopSignal bits{order.without_grace, order.grace_ms, order.code};
    answer(StopSent{order.attempt,
                    signal_supervisor(order.attempt, stop_signal_number(), pack(bits))});
  }

  bool signal_supervisor(model::AttemptId attempt, int signal, std::uint64_t bits) {
    const OpenRecord first = look_at(attempt);
    if (first.holder != Holder::kSupervisor || !first.record.beginning) return false;
    const int pidfd = open_pidfd(static_cast<int>(first.record.beginning->supervisor_pid));
    if (pidfd < 0) return false;
    // Held still, so the pid was its holder's when the handle was opened.
    const bool alive = look_at(attempt).holder == Holder::kSupervisor;
    const bool sent = alive && queue_signal(pidfd, signal, bits) == 0;
    if (sent) signal_pidfd(pidfd, SIGCONT);  // one that somebody has stopped could not act
    close(pidfd);
    return sent;
  }

  // True when no process of the attempt is left.
  bool kill_tree(model::AttemptId attempt) {
    const OpenRecord found = look_at(attempt);
    const std::string cgroup = cgroup_of(attempt, found.record);
    if (cgroup.empty()) return kill_without_cgroup(found.record);
    const int fd = open(cgroup.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT;
    kill_cgroup(fd);
    const bool empty = cgroup_is_empty(fd);
    close(fd);
    return empty && (rmdir(cgroup.c_str()) == 0 || errno == ENOENT);
  }

  // Of an attempt whose processes are gone. A supervisor that lives does it itself.
  void sweep(model::AttemptId attempt) const {
    if (look_at(attempt).holder != Holder::kSupervisor) {
      remove_leftovers(confinement_, attempt_name(attempt));
    }
  }

  // As recorded when it began: by now we may have another base. Where that cannot be read, as now.
  std::string cgroup_of(model::AttemptId attempt, const Record& record) const {
    if (record.beginning) return record.beginning->cgroup;
    return base_fd_ < 0 ? std::string() : base_.path + "/" + attempt_name(attempt);
  }

  static bool kill_without_cgroup(const Record& record) {
    if (!record.started) return true;
    return kill_process_group(static_cast<int>(record.started->pid), record.started->start_ticks);
  }

  void forget(model::AttemptId attempt) {
    if (base_fd_ >= 0) {
      const std::string name = attempt_name(attempt);
      if (unlinkat(base_fd_, name.c_str(), AT_REMOVEDIR) != 0 && errno == EBUSY) {
        return answer(ForgetRefused{attempt});
      }
    }
    sweep(attempt);
    remove_session_socket(o_.root, attempt);  // of a supervisor that was killed
    unlink(record_path(o_.root, attempt).c_str());
  }

  const LauncherOptions& o_;
  std::string error_;
  std::string boot_id_;
  std::string job_oom_score_;
  CgroupBase base_;
  HostConfinement confinement_;
  int base_fd_ = -1;
  int lock_fd_ = -1;
  int listener_ = -1;
  int socket_ = -1;
  int notice_fd_ = -1;
  bool greeted_ = false;
  char buffer_[kMaxMessage];
};

}  // namespace

int run_launcher(const LauncherOptions& options, std::string& error) {
  return Launcher(options).run(error);
}

}  // namespace gpu_platform::node
