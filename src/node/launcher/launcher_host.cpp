#include "node/launcher/launcher_host.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "node/cgroup_freezer.h"
#include "node/launcher/delegated_scope.h"
#include "node/received_request.h"
#include "node/record.h"
#include "node/supervisor/supervisor.h"
#include "node/syscalls.h"
#include "node/user_switch.h"
#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

constexpr const char* kNotices = "notices";
constexpr int kNoticesSize = 1 << 20;
constexpr int kLastTimeoutMs = 300;  // of a launcher that ends

std::string failed(std::string_view what, const std::string& path) {
  return std::string(what) + " " + path + ": " + strerror(errno);
}

// Orders to supervisors come as a queued signal and may come before a new supervisor is ready: it
// must find them pending, so they are blocked here already. SIGPIPE would end us where a write can
// fail.
void set_signals() {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) reset_signal(signal);
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int ending : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigdelset(&blocked, ending);
  sigprocmask(SIG_SETMASK, &blocked, nullptr);
}

// Supervisors are watched by handle, never waited for. Set once the set-up's own children are done.
void let_children_vanish() {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  action.sa_flags = SA_NOCLDWAIT;
  sigaction(SIGCHLD, &action, nullptr);
}

// Each step returns why it failed, or nothing.
class Preparation {
 public:
  Preparation(const LauncherOptions& options, LauncherHost& host) : o_(options), host_(host) {}

  std::string run() {
    std::string why = find_container_client();
    if (!why.empty()) return why;
    find_driver_program();
    umask(0);  // modes are written out where files are made
    // With root's rights we hold more than the users: none of them reads us or what we fork.
    if (geteuid() == 0 && close_to_tracing() != nullptr) return failed("close to tracing", o_.root);
    set_signals();
    why = open_node_folders(o_.root, o_.client_gid, host_.folders);
    if (why.empty()) why = take_lock();
    if (why.empty()) why = open_notices();
    if (why.empty()) why = name_folder();
    if (why.empty()) why = make_cgroups();
    if (!why.empty()) return why;
    host_.boot_id = os::read_small_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id");
    if (!host_.boot_id.empty() && host_.boot_id.back() == '\n') host_.boot_id.pop_back();
    protect_from_oom();
    let_children_vanish();
    remove_lost_folders(host_.confinement);
    return {};
  }

 private:
  // Programs of ours lie beside this one.
  static std::string beside_this(std::string_view name) {
    char self[4096];
    const ssize_t size = readlink("/proc/self/exe", self, sizeof self);
    const std::string path(self, size < 0 ? 0 : static_cast<std::size_t>(size));
    return path.substr(0, path.rfind('/') + 1) + std::string(name);
  }

  // The program that writes to the GPUs' driver. Without it, and with rules that are none, jobs run
  // all the same.
  void find_driver_program() {
    const std::string program = beside_this("gpu-platform-driver");
    if (access(program.c_str(), X_OK) == 0) host_.driver_program = program;
  }

  std::string find_container_client() {
    if (o_.containers.empty()) return {};
    if (const std::string why = error_in_rules(o_.containers); !why.empty()) {
      return "containers: " + why;
    }
    const std::string client = beside_this("gpu-platform-container");
    if (access(client.c_str(), X_OK) != 0) return "containers: " + client + ": " + strerror(errno);
    host_.container_client = client;
    return {};
  }

  std::string take_lock() {
    const std::string shown = o_.root + "/run/launcher.lock";
    host_.lock_fd = open_below(host_.folders.run, "launcher.lock", O_RDWR | O_CREAT, 0600);
    if (host_.lock_fd < 0) return failed("open", shown);
    while (flock(host_.lock_fd, LOCK_EX) != 0) {
      if (errno != EINTR) return failed("lock", shown);
    }
    return {};
  }

  // The FIFO for the notices of supervisors. It is kept from launcher to launcher, because living
  // supervisors hold it open. It is open for reading and writing: without a reader it could not be
  // written to, and after its last writer has gone it would be readable at its end for ever.
  std::string open_notices() {
    const std::string shown = o_.root + "/run/" + kNotices;
    if (mkfifoat(host_.folders.run, kNotices, 0600) != 0 && errno != EEXIST) {
      return failed("make", shown);
    }
    host_.notice_fd = open_below(host_.folders.run, kNotices, O_RDWR | O_NONBLOCK);
    struct stat about{};
    if (host_.notice_fd < 0 || fstat(host_.notice_fd, &about) != 0) return failed("open", shown);
    if (!S_ISFIFO(about.st_mode)) return shown + " is not a FIFO";
    fcntl(host_.notice_fd, F_SETPIPE_SZ, kNoticesSize);  // a smaller one only means more retries
    return {};
  }

  std::string name_folder() {
    struct stat about{};
    char real[4096];
    const std::string handle = "/proc/self/fd/" + std::to_string(host_.folders.root);
    const ssize_t size = readlink(handle.c_str(), real, sizeof real);
    if (size <= 0 || fstat(host_.folders.root, &about) != 0) return failed("find", o_.root);
    host_.folders.path.assign(real, static_cast<std::size_t>(size));
    host_.token = root_token(host_.folders.path, about.st_dev, about.st_ino);
    return {};
  }

  // Below a cgroup that systemd gives us; without --jobs-scope else at the top of the tree, with
  // the controllers that are passed on there.
  std::string make_cgroups() {
    DelegatedScope scope;
    const std::string& name = o_.jobs_scope;
    if (name.empty()) {
      scope.open_for_controllers("gpu-platform-" + host_.token);
    } else {
      scope.open(name);
      if (scope.path().empty()) {
        return "systemd gave no " + name + ".scope for jobs: " + scope.why();
      }
    }
    std::string parent = scope.path();
    CgroupBase& base = host_.base;
    base = make_cgroup_base(host_.token, parent);
    if (base.path.empty() && !parent.empty()) {
      parent.clear();
      base = make_cgroup_base(host_.token, parent);
    }
    scope.let_go();
    host_.confinement = find_confinement({&host_.folders, host_.token, base.path, base.why, parent,
                                          scope.why(), o_.mode_setting, o_.filter_syscalls});
    if (base.path.empty()) return {};
    host_.base_fd = open(base.path.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (host_.base_fd < 0) return failed("open", base.path);
    thaw_cgroups_below(host_.base_fd);  // a keeper of turns that was killed has left them so
    return {};
  }

  // If the kernel killed a supervisor for memory, the end of its job could not be known. Jobs get
  // back the value that we were started with.
  void protect_from_oom() {
    const std::string own = os::read_small_file(AT_FDCWD, "/proc/self/oom_score_adj");
    if (own.empty() || !os::write_small_file(AT_FDCWD, "/proc/self/oom_score_adj", "-900")) return;
    host_.job_oom_score = own;
  }

  const LauncherOptions& o_;
  LauncherHost& host_;
};

}  // namespace

std::string LauncherHost::rootless_cluster() const {
  return geteuid() == 0 ? "" : "gpu-platform-" + token;
}

std::string prepare(const LauncherOptions& options, LauncherHost& host) {
  std::string why = error_of(options.hooks);
  return why.empty() ? Preparation(options, host).run() : why;
}

void leave(const LauncherHost& host) {
  // A supervisor that is left may be about to make its job's groups in these places.
  if (!leave_cgroup_base(host.base)) return;
  leave_confinement(host.confinement);
  if (!host.container_client.empty()) remove_engine_groups(host.base.path, kLastTimeoutMs);
}

}  // namespace gpu_platform::node
