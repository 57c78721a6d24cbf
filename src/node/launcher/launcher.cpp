#include "node/launcher/launcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <optional>
#include <utility>
#include <vector>

#include "node/cgroup.h"
#include "node/channel_lines.h"
#include "node/channel_refusal.h"
#include "node/confinement.h"
#include "node/folders/node_folders.h"
#include "node/launcher/attempts_on_disk.h"
#include "node/launcher/delegated_scope.h"
#include "node/launcher/file_opener.h"
#include "node/launcher/identities.h"
#include "node/owed_epilog.h"
#include "node/received_request.h"
#include "node/record.h"
#include "node/relay/relay.h"
#include "node/supervisor/attempt_report.h"
#include "node/supervisor/session_socket.h"
#include "node/supervisor/supervisor.h"
#include "node/syscalls.h"
#include "node/user_switch.h"
#include "os/clock.h"
#include "os/packet_socket.h"
#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

constexpr std::size_t kMaxWaiting = 4096;
constexpr const char* kNotices = "notices";
constexpr int kNoticesSize = 1 << 20;
constexpr std::int64_t kCleanEveryMs = 3'600'000;
constexpr int kLastTimeoutMs = 300;  // of a launcher that ends

// Nothing where there is no driver of NVIDIA's.
std::optional<std::vector<std::uint32_t>> read_gpu_minors() {
  const std::string path = "/proc/driver/nvidia/gpus";
  DIR* const folder = opendir(path.c_str());
  if (folder == nullptr) return std::nullopt;
  std::vector<std::uint32_t> minors;
  while (const dirent* entry = readdir(folder)) {
    const std::string file = path + "/" + entry->d_name + "/information";
    const auto minor = parse_device_minor(os::read_small_file(AT_FDCWD, file.c_str()));
    if (minor) minors.push_back(*minor);
  }
  closedir(folder);
  return minors;
}

class Launcher {
 public:
  explicit Launcher(const LauncherOptions& options)
      : o_(options), identities_(options.identities) {}

  int run(std::string& error) {
    if (!set_up()) {
      error = std::move(error_);
      return 1;
    }
    if (o_.socket_fd >= 0) {
      socket_ = o_.socket_fd;
      serve();
      // A supervisor that is left may be about to make its job's groups in these places.
      if (leave_cgroup_base(base_)) {
        leave_confinement(confinement_);
        if (!container_client_.empty()) remove_engine_groups(base_.path, kLastTimeoutMs);
      }
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
    if (error_.empty() && !o_.containers.empty()) find_container_client();
    if (!error_.empty()) return false;
    umask(0);  // modes are written out where files are made
    // With root's rights we hold more than the users: none of them reads us or what we fork.
    if (geteuid() == 0 && close_to_tracing() != nullptr) return failed("close to tracing", o_.root);
    set_signals();
    error_ = open_node_folders(o_.root, o_.client_gid, folders_);
    if (!error_.empty() || !take_lock() || !open_notices()) return false;
    struct stat about{};
    char real[4096];
    const std::string handle = "/proc/self/fd/" + std::to_string(folders_.root);
    const ssize_t size = readlink(handle.c_str(), real, sizeof real);
    if (size <= 0 || fstat(folders_.root, &about) != 0) return failed("find", o_.root);
    folders_.path.assign(real, static_cast<std::size_t>(size));
    token_ = root_token(folders_.path, about.st_dev, about.st_ino);
    if (!make_cgroups(token_)) return false;
    if (!base_.path.empty()) {
      base_fd_ = open(base_.path.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC);
      if (base_fd_ < 0) return failed("open", base_.path);
    }
    boot_id_ = os::read_small_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id");
    if (!boot_id_.empty() && boot_id_.back() == '\n') boot_id_.pop_back();
    attempts_.emplace(folders_, confinement_, token_, boot_id_, base_fd_);
    protect_from_oom();
    let_children_vanish();
    remove_lost_folders(confinement_);
    clean_containers();
    return true;
  }

  // The program that speaks to the container engine lies beside this one.
  void find_container_client() {
    error_ = objection_to_rules(o_.containers);
    if (!error_.empty()) {
      error_ = "containers: " + error_;
      return;
    }
    char self[4096];
    const ssize_t size = readlink("/proc/self/exe", self, sizeof self);
    const std::string path(self, size < 0 ? 0 : static_cast<std::size_t>(size));
    container_client_ = path.substr(0, path.rfind('/') + 1) + "gpu-platform-container";
    if (access(container_client_.c_str(), X_OK) != 0) {
      error_ = "containers: " + container_client_ + ": " + strerror(errno);
    }
  }

  // Without root's rights the engine is our user's own, and puts containers into no cgroup of ours.
  std::string rootless_cluster() const { return geteuid() == 0 ? "" : "gpu-platform-" + token_; }

  // What attempts that are over have left with the container engine, and unused images. No process
  // waits for it.
  void clean_containers() {
    const std::string cluster = rootless_cluster();
    if (container_client_.empty() || (base_.path.empty() && cluster.empty())) return;
    cleaned_ms_ = os::boot_ms();
    std::string words[] = {container_client_,
                           "clean",
                           "--rules",
                           o_.containers,
                           cluster.empty() ? "--cgroup" : "--cluster",
                           cluster.empty() ? base_.path : cluster,
                           "--root",
                           folders_.path};
    char* arguments[std::size(words) + 1] = {};
    for (std::size_t i = 0; i < std::size(words); ++i) arguments[i] = words[i].data();
    posix_spawnattr_t how;
    posix_spawnattr_init(&how);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
    int pid = 0;
    posix_spawn(&pid, arguments[0], nullptr, &how, arguments, environ);
    posix_spawnattr_destroy(&how);
  }

  // Below a cgroup that systemd gives us; without --jobs-scope else at the top of the tree, with
  // the controllers that are passed on there.
  bool make_cgroups(const std::string& token) {
    DelegatedScope scope;
    const std::string& name = o_.jobs_scope;
    if (name.empty()) {
      scope.open_for_controllers("gpu-platform-" + token);
    } else {
      scope.open(name);
      if (scope.path().empty()) {
        error_ = "systemd gave no " + name + ".scope for jobs: " + scope.why();
        return false;
      }
    }
    std::string parent = scope.path();
    base_ = make_cgroup_base(token, parent);
    if (base_.path.empty() && !parent.empty()) {
      parent.clear();
      base_ = make_cgroup_base(token, parent);
    }
    scope.let_go();
    confinement_ = find_confinement({&folders_, token, base_.path, base_.why, parent, scope.why(),
                                     o_.mode_setting, o_.filter_syscalls});
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

  bool take_lock() {
    lock_fd_ = open_below(folders_.run, "launcher.lock", O_RDWR | O_CREAT, 0600);
    if (lock_fd_ < 0) return failed("open", o_.root + "/run/launcher.lock");
    while (flock(lock_fd_, LOCK_EX) != 0) {
      if (errno != EINTR) return failed("lock", o_.root + "/run/launcher.lock");
    }
    return true;
  }

  // The FIFO for the notices of supervisors. It is kept from launcher to launcher, because living
  // supervisors hold it open. It is open for reading and writing: without a reader it could not be
  // written to, and after its last writer has gone it would be readable at its end for ever.
  bool open_notices() {
    const std::string shown = o_.root + "/run/" + kNotices;
    if (mkfifoat(folders_.run, kNotices, 0600) != 0 && errno != EEXIST)
      return failed("make", shown);
    notice_fd_ = open_below(folders_.run, kNotices, O_RDWR | O_NONBLOCK);
    struct stat about{};
    if (notice_fd_ < 0 || fstat(notice_fd_, &about) != 0) return failed("open", shown);
    if (S_ISFIFO(about.st_mode)) {
      fcntl(notice_fd_, F_SETPIPE_SZ, kNoticesSize);  // a smaller one only means more retries
      return true;
    }
    error_ = shown + " is not a FIFO";
    return false;
  }

  // If the kernel killed a supervisor for memory, the end of its job could not be known. Jobs get
  // back the value that we were started with.
  void protect_from_oom() {
    const std::string own = os::read_small_file(AT_FDCWD, "/proc/self/oom_score_adj");
    if (own.empty() || !os::write_small_file(AT_FDCWD, "/proc/self/oom_score_adj", "-900")) return;
    job_oom_score_ = own;
  }

  // ---- connections

  void listen_for_daemons() {
    if (!make_listener()) return;
    while (true) {
      socket_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket_ < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
      if (socket_ < 0) {
        failed("accept at", o_.listen_path);
        return;
      }
      if (may_connect()) serve();
      close(socket_);
    }
  }

  // In a folder that is in our hands, so that the name is what we have made until it is given away.
  bool make_listener() {
    const int folder = open_trusted_parent(o_.listen_path, error_);
    if (folder < 0) return false;
    const std::string name = o_.listen_path.substr(o_.listen_path.rfind('/') + 1);
    const std::string path = "/proc/self/fd/" + std::to_string(folder) + "/" + name;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
      error_ = "the name of the socket is too long: " + o_.listen_path;
      close(folder);
      return false;
    }
    memcpy(address.sun_path, path.data(), path.size());
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    unlinkat(folder, name.c_str(), 0);  // of a predecessor: we hold the lock
    umask(0177);                        // the mode is the name's from its first moment on
    const bool is_bound = listener_ >= 0 && bind(listener_, reinterpret_cast<sockaddr*>(&address),
                                                 sizeof address) == 0;
    umask(0);
    const bool is_ready =
        is_bound && listen(listener_, 4) == 0 &&
        (o_.client_uid == geteuid() || fchownat(folder, name.c_str(), o_.client_uid,
                                                static_cast<gid_t>(-1), AT_SYMLINK_NOFOLLOW) == 0);
    if (!is_ready) failed("listen at", o_.listen_path);
    close(folder);
    return is_ready;
  }

  bool may_connect() const {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
    return peer.uid == 0 || peer.uid == o_.client_uid;
  }

  void serve() {
    greeted_ = false;
    while (serve_some()) {
    }
    for (const Waiting& order : waiting_) {
      if (order.fd >= 0) close(order.fd);
    }
    waiting_.clear();
  }

  // Serves the messages that are there, or the next one. Returns false if the daemon is gone or was
  // sent away.
  bool serve_some() {
    std::vector<pollfd> handles{{socket_, POLLIN, 0}};
    identities_.watch(handles);
    if (handles.size() > 1) {
      poll(handles.data(), handles.size(), identities_.timeout_ms(os::boot_ms()));
      if (identities_.work(os::boot_ms())) go_on_with_waiting();
      if (handles[0].revents == 0) return true;
    }
    const os::Packet packet = os::receive_packet(socket_, buffer_, sizeof buffer_);
    if (packet.kind == os::Packet::Kind::kClosed) return false;
    const auto message =
        packet.kind == os::Packet::Kind::kMessage ? decode(packet.bytes) : std::optional<Message>();
    const bool go_on =
        message ? handle(*message, packet.bytes, packet.fd) : refuse("not a message we know");
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
      attempts_->signal_supervisor(limit_order->attempt, limit_signal_number(),
                                   limit_order->limit_ms);
    } else if (const auto* signal_order = std::get_if<SendSignal>(&message)) {
      attempts_->signal_supervisor(signal_order->attempt, send_signal_number(),
                                   signal_order->signal);
    } else if (const auto* kill_order = std::get_if<KillTree>(&message)) {
      answer(TreeState{kill_order->attempt, end_tree(kill_order->attempt)});
    } else if (const auto* forget_order = std::get_if<Forget>(&message)) {
      forget(*forget_order);
    } else if (const auto* removal = std::get_if<RemoveOutput>(&message)) {
      for (const model::JobId job : removal->jobs) attempts_->remove_output(job);
    } else if (const auto* channel_order = std::get_if<OpenChannel>(&message)) {
      open_channel(*channel_order, packet, fd);
    } else if (const auto* file_order = std::get_if<OpenFile>(&message)) {
      open_file(*file_order, packet, fd);
    } else {
      return refuse("a message that only a launcher sends");
    }
    return true;
  }

  // Returns whether nothing is left of it. A supervisor that was lost leaves us the site's epilog.
  bool end_tree(model::AttemptId attempt) {
    if (OwedEpilog::is_run(folders_.attempts, attempt)) return false;
    if (!attempts_->kill_tree(attempt)) return false;
    attempts_->sweep(attempt);
    return !runs_owed_epilog(attempt);
  }

  // Once at most: one that began with its supervisor has failed with it.
  bool runs_owed_epilog(model::AttemptId attempt) {
    const OpenRecord found = attempts_->look_at(attempt);
    if (found.holder != Holder::kNobody || !found.record.beginning || found.record.cleaned) {
      return false;
    }
    OwedEpilog owed(folders_.attempts, attempt);
    if (!owed.take()) return false;
    const std::optional<LaunchRequest> request = owed.request();
    const int record = open_below(folders_.attempts, attempt_name(attempt).c_str(), O_RDWR);
    const bool is_to_be_run =
        request && request->boot_id == boot_id_ && !o_.hooks.epilog.empty() && !owed.has_begun();
    if (is_to_be_run && record >= 0) {
      fork_lost_epilog(owed, {record, attempt, *request, found.record.end});
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

  struct LostAttempt {
    int record;
    model::AttemptId attempt;
    const LaunchRequest& request;  // of the epilog
    const std::optional<EndRecord>& end;
  };

  // If it cannot be started now, the daemon asks again.
  void fork_lost_epilog(const OwedEpilog& owed, const LostAttempt& lost) {
    if (flock(lost.record, LOCK_EX) != 0) return;
    prepare_for(confinement_, lost.request);
    owed.mark_begun();
    int pidfd = -1;
    const int pid = fork_with_pidfd(&pidfd);
    if (pid == 0) {
      leave_launcher();
      run_lost_epilog(supervisor_options(lost.attempt, lost.request, lost.record), lost.end);
    }
    if (pid < 0) owed.mark_owed();
    if (pid > 0) close(pidfd);
  }

  void forget(const Forget& order) {
    bool has_containers = false;
    for (const auto& attempt : order.attempts) {
      has_containers = has_containers || attempts_->has_container_left(attempt);
      const bool is_forgotten = attempts_->forget(attempt);
      if (!is_forgotten) answer(ForgetRefused{attempt});
      // Of a supervisor that was killed.
      if (is_forgotten && !container_client_.empty()) {
        remove_engine_groups(base_.path + "/" + attempt_name(attempt));
      }
    }
    // Jobs' images grow old meanwhile.
    const bool is_due = os::boot_ms() - cleaned_ms_ >= kCleanEveryMs;
    if (has_containers || is_due) clean_containers();
  }

  bool greet(const Hello& hello) {
    if (hello.version != kProtocolVersion) {
      return refuse("this launcher speaks version " + std::to_string(kProtocolVersion) +
                    " of the protocol, not " + std::to_string(hello.version));
    }
    greeted_ = true;
    Welcome welcome;
    welcome.pid = static_cast<std::uint32_t>(getpid());
    welcome.isolation = base_fd_ >= 0 ? Isolation::kCgroup : Isolation::kAdvisory;
    welcome.can_switch_user = geteuid() == 0;
    welcome.folder = folders_.path;
    welcome.detail = base_fd_ >= 0 ? base_.path : base_.why;
    welcome.guards = confinement_.guards;
    answer(welcome, notice_fd_);
    return true;
  }

  // ---- launch

  void launch(const Launch& order, std::string_view packet, int fd) {
    std::string_view bytes = order.request;
    if (order.in_memory_file) bytes = map_request(fd);
    std::optional<LaunchRequest> request = decode_request(bytes);
    if (!request) {
      answer(LaunchFailed{order.attempt, "the request is damaged"});
    } else if (const auto why = objection_to_start(*request, packet, fd)) {
      if (!why->empty()) answer(LaunchFailed{order.attempt, *why});
    } else {
      launch_once(order.attempt, *request);
    }
    if (order.in_memory_file) release_request(bytes);
  }

  // Nothing: it may be started, and its user is known. Empty: that is being asked for, and the
  // order will be handled again.
  std::optional<std::string> objection_to_start(LaunchRequest& request, std::string_view packet,
                                                int fd) {
    if (std::string why = objection_to(request, boot_id_); !why.empty()) return why;
    if (std::string why = objection_to_devices(request.devices); !why.empty()) return why;
    if (std::string why = objection_to_container(request); !why.empty()) return why;
    Identities::Answer user = identities_.find(request.user.uid, os::boot_ms());
    if (user.kind == Identities::Answer::Kind::kRefused) return std::move(user.why);
    if (user.kind == Identities::Answer::Kind::kKnown) {
      request.user = std::move(user.user);
      return std::nullopt;
    }
    return keep_waiting(packet, fd) ? "" : "too many jobs wait for the user database";
  }

  // A container is held by the attempt's cgroup, into which its engine puts it. The engine of our
  // own user has no rights but ours, and its containers are held as our processes are.
  std::string objection_to_container(const LaunchRequest& request) const {
    if (!request.container.is_given()) return {};
    if (container_client_.empty()) {
      return "this launcher starts no jobs with an image (--containers)";
    }
    if (geteuid() == 0 && base_fd_ < 0) return "jobs with an image need cgroups: " + base_.why;
    return {};
  }

  // GPUs may come while we run, with their driver.
  std::string objection_to_devices(const std::vector<DeviceNumber>& devices) {
    if (devices.empty()) return {};
    DriverList& drivers = confinement_.drivers;
    const std::int64_t now_ms = os::boot_ms();
    if (!gpu_minors_) gpu_minors_ = read_gpu_minors();
    if (node::objection_to_devices(devices, drivers.text(now_ms), gpu_minors_).empty()) return {};
    gpu_minors_ = read_gpu_minors();
    return node::objection_to_devices(devices, drivers.read_again(now_ms), gpu_minors_);
  }

  void launch_once(model::AttemptId attempt, const LaunchRequest& request) {
    const std::string name = attempt_name(attempt);
    const unsigned mode = o_.client_gid >= 0 ? 0640 : 0600;
    // Created here and only here, and only once: this is what makes a repeated order harmless.
    const int record = open_below(folders_.attempts, name.c_str(), O_RDWR | O_CREAT | O_EXCL, mode);
    if (record < 0 && errno == EEXIST) return answer(Exists{attempt});
    std::string why = record < 0 ? "make the record " + name + ": " + strerror(errno) : "";
    if (why.empty()) why = fork_supervisor(record, attempt, request);
    if (!why.empty()) {
      if (record >= 0) unlinkat(folders_.attempts, name.c_str(), 0);
      answer(LaunchFailed{attempt, why});
    }
    if (record >= 0) close(record);
  }

  std::string fork_supervisor(int record, model::AttemptId attempt, const LaunchRequest& request) {
    // The lock is taken before the fork and inherited: from here on it is free only when no process
    // of the supervisor is left. (A test of the lock shares it for a moment, hence no LOCK_NB.)
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
    run_supervisor(supervisor_options(attempt, request, record));
  }

  SupervisorOptions supervisor_options(model::AttemptId attempt, const LaunchRequest& request,
                                       int record) const {
    SupervisorOptions options;
    options.attempt = attempt;
    options.request = &request;
    options.folders = &folders_;
    options.cgroup_base = base_.path;
    options.base_fd = base_fd_;
    options.confinement = &confinement_;
    options.record_fd = record;
    options.notice_fd = notice_fd_;
    options.oom_score = job_oom_score_.empty() ? nullptr : job_oom_score_.c_str();
    options.hooks = &o_.hooks;
    options.containers = {container_client_, o_.containers, rootless_cluster(),
                          o_.container_timeout_ms};
    options.title = o_.title;
    return options;
  }

  // Closes and resets what a child of the launcher must not keep.
  void leave_launcher() {
    close(socket_);  // the daemon must see when the launcher is gone
    close(lock_fd_);
    if (listener_ >= 0) close(listener_);
    // A reader of the daemon's output must not wait for the end of its jobs.
    if (o_.error_fd >= 0) close(o_.error_fd);
  }

  // ---- channels

  void open_channel(const OpenChannel& order, std::string_view packet, int fd) {
    if (fd < 0) return;
    const model::AttemptId attempt = order.attempt;
    const OpenRecord found = attempts_->look_at(attempt);
    const bool is_running = found.holder == Holder::kSupervisor && found.record.beginning &&
                            found.record.started && !found.record.end;
    if (!is_running) return refuse_channel(fd, "the job has just ended");
    if (order.attach) return hand_to_supervisor(attempt, fd);
    const Identities::Answer user = identities_.find(found.record.beginning->uid, os::boot_ms());
    if (user.kind == Identities::Answer::Kind::kRefused) return refuse_channel(fd, user.why);
    if (user.kind == Identities::Answer::Kind::kKnown) {
      return start_relay(attempt, found.record, user.user, fd);
    }
    if (!keep_waiting(packet, fd)) refuse_channel(fd, "too many wait for the user database");
  }

  void start_relay(model::AttemptId attempt, const Record& record, const Identity& user, int fd) {
    const int log_fd = log_for_channel_of(user.uid);
    const bool has_cgroup = !record.beginning->cgroup.empty();
    const int cgroup = has_cgroup ? attempts_->open_cgroup(attempt, record) : -1;
    if (has_cgroup && cgroup < 0) return refuse_channel(fd, "the job has just ended");
    int pidfd = -1;
    const int pid = fork_with_pidfd(&pidfd);
    if (pid == 0) become_relay(attempt, record, user, {cgroup, fd, log_fd});
    if (pid < 0) refuse_channel(fd, std::string("start a relay: ") + strerror(errno));
    if (pid > 0) close(pidfd);
    if (cgroup >= 0) close(cgroup);
  }

  void hand_to_supervisor(model::AttemptId attempt, int channel) const {
    const int session = connect_to_session(folders_.run, attempt);
    const bool is_handed = session >= 0 && os::send_packet(session, "attach", channel);
    if (!is_handed) refuse_channel(channel, "the job has just ended, or takes no input");
    if (session >= 0) close(session);
  }

  struct RelayHandles {
    int cgroup = -1;
    int channel = -1;
    int log = -1;  // -1: nothing is told
  };

  // A user that opens very many channels must not fill the log.
  int log_for_channel_of(std::uint32_t uid) {
    if (o_.error_fd < 0) return -1;
    const std::string dropped = channel_lines_.close_if_over(os::boot_ms());
    [[maybe_unused]] const ssize_t wrote = write(o_.error_fd, dropped.data(), dropped.size());
    return channel_lines_.take(uid, os::boot_ms()) ? o_.error_fd : -1;
  }

  [[noreturn]] void become_relay(model::AttemptId attempt, const Record& record,
                                 const Identity& user, const RelayHandles& handles) {
    RelayOptions options;
    // A channel ends soon after the daemon, so that a reader of the log need not wait for it.
    if (handles.log >= 0) options.log_fd = fcntl(handles.log, F_DUPFD_CLOEXEC, 3);
    leave_launcher();
    options.attempt = attempt;
    options.record = record;
    options.boot_id = boot_id_;
    options.user = user;
    options.cgroup_fd = handles.cgroup;
    options.notice_fd = notice_fd_;
    options.limits = &confinement_.limits;
    options.filters_syscalls = confinement_.filters_syscalls;
    if (rootless_cluster().empty()) options.container_client = container_client_;
    options.container_rules = o_.containers;
    options.channel = handles.channel;
    options.oom_score = job_oom_score_.empty() ? nullptr : job_oom_score_.c_str();
    options.title = o_.title;
    run_relay(options);
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

  void stop(const Stop& order) {
    const StopSignal bits{order.without_grace, order.grace_ms, order.code};
    answer(StopSent{order.attempt,
                    attempts_->signal_supervisor(order.attempt, stop_signal_number(), pack(bits))});
  }

  const LauncherOptions& o_;
  std::string error_;
  std::string boot_id_;
  std::string job_oom_score_;
  std::string container_client_;  // the program; empty: jobs have no image
  NodeFolders folders_;
  CgroupBase base_;
  HostConfinement confinement_;
  std::optional<AttemptsOnDisk> attempts_;
  std::optional<std::vector<std::uint32_t>> gpu_minors_;  // as the driver said last
  Identities identities_;
  ChannelLines channel_lines_;
  FileOpener files_;
  std::vector<Waiting> waiting_;
  std::string token_;            // of our folder, which names our cgroup
  std::int64_t cleaned_ms_ = 0;  // when clean_containers was started last, on the boot clock
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
