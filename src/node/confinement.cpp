#include "node/confinement.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "node/devices/device_program.h"
#include "node/devices/device_rules.h"
#include "node/folders/host_names.h"
#include "node/folders/remove_tree.h"
#include "node/seccomp/syscall_filter.h"
#include "node/syscalls.h"
#include "os/clock.h"

namespace gpu_platform::node {

namespace {

// Tried on a cgroup of its own.
std::string error_in_device_programs(const std::string& cgroup_base) {
  DevicePrograms programs;
  std::string why;
  const int program = programs.load(device_rules({}, {}), why);
  if (program < 0) return why;
  const std::string path = cgroup_base + "/probe";
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
    return "make " + path + ": " + strerror(errno);
  }
  const int fd = open(path.c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC);
  why = fd < 0 ? "open " + path + ": " + strerror(errno) : attach_device_program(fd, program);
  close(program);
  if (fd >= 0) close(fd);
  rmdir(path.c_str());
  return why;
}

GuardState state_of(Guard guard, const std::string& why_not) {
  return {guard, why_not.empty(), why_not};
}

GuardState state_of(Guard guard, const LimitPlace& place, const std::string& why_no_scope) {
  if (place.kind != LimitPlace::Kind::kNone) return {guard, true, ""};
  std::string why =
      "the controller is not delegated to this cgroup, neither in cgroup v2 nor in v1";
  if (!why_no_scope.empty()) why += ", and systemd gives jobs no scope: " + why_no_scope;
  return {guard, false, std::move(why)};
}

// Jobs that run as the daemon's own user may change what is set for them.
void admit_one_user(std::vector<GuardState>& guards) {
  for (GuardState& state : guards) {
    if (state.held) state = {state.guard, false, std::string(kRunsAsDaemonsUser)};
  }
}

bool has_record(int attempts, const std::string& name) {
  return faccessat(attempts, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

// Runs `work` in a process of its own without waiting for it. That process has only two folder
// handles of the launcher: neither its lock nor its socket.
template <class Work>
void in_own_process(const NodeFolders& folders, const Work& work) {
  constexpr int kTmp = 3;
  constexpr int kAttempts = 4;
  constexpr int kHigh = 10;
  if (fork_into_cgroup(-1) != 0) return;
  const int tmp = fcntl(folders.tmp, F_DUPFD_CLOEXEC, kHigh);
  const int attempts = fcntl(folders.attempts, F_DUPFD_CLOEXEC, kHigh);
  if (dup2(tmp, kTmp) < 0 || dup2(attempts, kAttempts) < 0) _exit(1);
  syscall(SYS_close_range, kAttempts + 1, ~0U, 0);
  work(kTmp, kAttempts);
  _exit(0);
}

}  // namespace

HostConfinement find_confinement(const HostGrounds& grounds) {
  HostConfinement host;
  host.folders = grounds.folders;
  host.token = grounds.token;
  host.mode_setting = grounds.mode_setting;
  const bool has_cgroups = !grounds.cgroup_base.empty();
  host.limits = make_limit_places(grounds.token, grounds.cgroup_base, grounds.jobs_cgroup);
  const std::string no_devices =
      has_cgroups ? error_in_device_programs(grounds.cgroup_base) : grounds.why_no_cgroup;
  const std::string no_folders =
      geteuid() == 0 ? error_in_private_folders() : "not started as root";
  host.private_folders = no_folders.empty();
  std::string no_hiding = no_folders;
  if (no_hiding.empty()) host.proc_fd = open_hidden_proc(no_hiding);
  const std::string no_filter =
      grounds.filters_syscalls ? error_in_syscall_filter() : "switched off (--seccomp off)";
  host.filters_syscalls = no_filter.empty();
  host.devices = no_devices.empty();
  host.guards = {
      state_of(Guard::kProcessTree, has_cgroups ? "" : grounds.why_no_cgroup),
      state_of(Guard::kUser, ""),
      state_of(Guard::kDevices, no_devices),
      state_of(Guard::kMemory, host.limits.of(Resource::kMemory), grounds.why_no_scope),
      state_of(Guard::kProcesses, host.limits.of(Resource::kProcesses), grounds.why_no_scope),
      state_of(Guard::kCpu, host.limits.of(Resource::kCpu), grounds.why_no_scope),
      state_of(Guard::kFolders, no_folders),
      state_of(Guard::kCores, host.limits.of(Resource::kCores), grounds.why_no_scope),
      state_of(Guard::kSyscalls, no_filter),
      state_of(Guard::kProcessList, no_hiding),
  };
  if (geteuid() != 0) admit_one_user(host.guards);
  return host;
}

void leave_confinement(const HostConfinement& host) {
  leave_limit_places(host.limits);
}

// Drivers may come while we run, and most of their majors are given out when they do.
void prepare_for(HostConfinement& host, const LaunchRequest& request) {
  if (!host.devices) return;
  const DeviceGrounds grounds{host.drivers.text(os::boot_ms()), host.mode_setting};
  std::string why;  // told by the supervisor, which tries again
  host.programs.load(device_rules(grounds, request.devices), why);
}

namespace {

std::string_view emulated_nodes_of(const LaunchRequest& request) {
  for (const std::string_view entry : request.environment) {
    if (entry.starts_with(kEmulatedNodes))
      return std::string_view(entry.data() + kEmulatedNodes.size());  // without its NUL
  }
  return {};
}

}  // namespace

std::string JobConfinement::guard_devices(const LaunchRequest& request, int cgroup_fd) const {
  if (cgroup_fd < 0 || !host_.devices) return {};
  DevicePrograms programs = host_.programs;
  std::string why;
  const DeviceGrounds grounds{host_.drivers.last(), host_.mode_setting};
  const int program = programs.load(device_rules(grounds, request.devices), why);
  return program < 0 ? why : attach_device_program(cgroup_fd, program);
}

std::string JobConfinement::set_up(const LaunchRequest& request, int cgroup_fd) {
  if (std::string why = guard_devices(request, cgroup_fd); !why.empty()) return why;
  binding_.cpus = parse_number_list(request.near_cpus).value_or(Bits());
  binding_.nodes = parse_number_list(request.near_nodes).value_or(Bits());
  if (cgroup_fd >= 0) {
    const LimitValues values{request.memory_bytes, request.max_processes, request.cpus,
                             binding_.cpus};
    std::string why = limits_.apply(host_.limits, name_, cgroup_fd, values);
    if (!why.empty()) return why;
  }
  if (!host_.private_folders || !request.private_folders) return {};
  has_folders_ = true;
  const std::string_view workdir =
      request.workdir.substr(0, request.workdir.size() - 1);  // its NUL
  describe_folders(request.memory_bytes, workdir, emulated_nodes_of(request), folders_);
  if (request.hide_processes) folders_.proc = host_.proc_fd;
  const FolderOwner owner{request.user.uid, request.user.gid};
  if (request.mps_gpu.size() > 1) {
    const std::string_view gpu = request.mps_gpu.substr(0, request.mps_gpu.size() - 1);
    const std::string folder = mps_folder(host_.token, gpu, owner.uid);
    if (std::string why = share_shm(folder + "/shm", owner, folders_); !why.empty()) return why;
  }
  return make_private_tmp(host_.folders->tmp, name_, owner, folders_);
}

void JobConfinement::remove_folder() {
  if (!has_folders_) return;
  close_private_tmp(folders_);
  remove_tree(host_.folders->tmp, name_.c_str());
}

JobConfinement::~JobConfinement() {
  drop_mounts();
}

void JobConfinement::drop_mounts() {
  if (mounts_fd_ >= 0) close(mounts_fd_);
  mounts_fd_ = -1;
}

void remove_leftovers(const HostConfinement& host, const std::string& name) {
  remove_limit_groups(host.limits, name);
  if (faccessat(host.folders->tmp, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0) return;
  in_own_process(*host.folders, [&](int tmp, int) { remove_tree(tmp, name.c_str()); });
}

void remove_lost_folders(const HostConfinement& host) {
  in_own_process(*host.folders, [&](int tmp, int attempts) {
    const int copy = openat(tmp, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* const folder = copy < 0 ? nullptr : fdopendir(copy);
    while (const dirent* entry = folder == nullptr ? nullptr : readdir(folder)) {
      const std::string name = entry->d_name;
      if (parse_attempt_name(name) && !has_record(attempts, name)) remove_tree(tmp, name.c_str());
    }
  });
}

}  // namespace gpu_platform::node
