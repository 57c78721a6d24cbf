#pragma once

#include <string>
#include <vector>

#include "node/devices/device_program.h"
#include "node/folders/node_folders.h"
#include "node/folders/private_folders.h"
#include "node/limits/cpu_binding.h"
#include "node/limits/job_limits.h"
#include "node/protocol.h"

// What keeps a job within its bounds beside its cgroup and its user: device program, limits,
// private folders. docs/isolation.md says what each holds.

namespace gpu_platform::node {

// What this host lets us hold. Found out once by the launcher, with real attempts; supervisors
// inherit it.
struct HostConfinement {
  const NodeFolders* folders = nullptr;  // the launcher's
  LimitPlaces limits;
  bool devices = false;
  bool mode_setting = false;  // jobs with GPUs may open /dev/nvidia-modeset
  bool private_folders = false;
  int proc_fd = -1;  // what becomes jobs' /proc; -1: /proc shows all processes
  bool filters_syscalls = false;
  std::string proc_devices;  // as it was for the last job
  DevicePrograms programs;
  std::vector<GuardState> guards;  // the same for people; one for each Guard
};

struct HostGrounds {
  const NodeFolders* folders = nullptr;  // open; must outlive what is made of it
  std::string token;
  std::string cgroup_base;  // empty: none, for the reason beside it
  std::string why_no_cgroup;
  std::string jobs_cgroup;   // of the scope that the base is in; empty: none
  std::string why_no_scope;  // systemd was asked for one and gave none
  bool mode_setting = false;
  bool filters_syscalls = true;  // as the site wants it
};
HostConfinement find_confinement(const HostGrounds& grounds);
void leave_confinement(const HostConfinement& host);
// In the launcher, for the supervisor that it forks next: what jobs can share is made only once.
void prepare_for(HostConfinement& host, const LaunchRequest& request);

// Of one attempt; in its supervisor.
class JobConfinement {
 public:
  ~JobConfinement();
  JobConfinement(const JobConfinement&) = delete;
  JobConfinement& operator=(const JobConfinement&) = delete;
  JobConfinement(const HostConfinement& host, std::string name)
      : host_(host), name_(std::move(name)) {}

  // Before any process of the job is there. Where the host can hold a bound, failing to set it is
  // an error: what failed, empty when nothing did.
  std::string set_up(const LaunchRequest& request, int cgroup_fd);

  JobLimits& limits() { return limits_; }
  const CpuBinding& binding() const { return binding_; }
  bool filters_syscalls() const { return host_.filters_syscalls; }
  // Null: the host's are shared.
  const PrivateFolders* folders() const { return has_folders_ ? &folders_ : nullptr; }

  // The mounts of the job's first process, which this process closes; -1: none. Otherwise the end
  // of that process would wait until the kernel has taken down its mounts. They are released with
  // this process, after the end has been reported. Later processes of the job enter them.
  void hold_mounts(int fd) { mounts_fd_ = fd; }
  int mounts() const { return mounts_fd_; }
  void drop_mounts();

  // When no process of it is left. The groups at once; the folder may take long.
  void remove_groups() { remove_limit_groups(host_.limits, name_); }
  void remove_folder();

 private:
  std::string guard_devices(const LaunchRequest& request, int cgroup_fd) const;

  const HostConfinement& host_;
  const std::string name_;
  JobLimits limits_;
  CpuBinding binding_;
  PrivateFolders folders_;
  bool has_folders_ = false;
  int mounts_fd_ = -1;
};

// What a supervisor that was killed has left of attempts; for the launcher. The folder is removed
// by a process made for it, since that may take long.
void remove_leftovers(const HostConfinement& host, const std::string& name);
// The folders of attempts without a record: of earlier launchers and boots.
void remove_lost_folders(const HostConfinement& host);

}  // namespace gpu_platform::node
