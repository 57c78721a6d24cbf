#pragma once

#include <string>
#include <vector>

#include "node/devices/device_program.h"
#include "node/devices/driver_list.h"
#include "node/folders/node_folders.h"
#include "node/folders/private_folders.h"
#include "node/limits/cpu_binding.h"
#include "node/limits/job_limits.h"
#include "node/protocol.h"

// The guards that confine a job beside its cgroup and its user: device program, limits, private
// folders. docs/isolation.md describes them.

namespace gpu_platform::node {

// The guards that this host can hold. The launcher finds them out once, with real attempts;
// supervisors inherit the result.
struct HostConfinement {
  const NodeFolders* folders = nullptr;  // the launcher's
  std::string token;                     // of its folder
  LimitPlaces limits;
  bool devices = false;
  bool mode_setting = false;  // jobs with GPUs may open /dev/nvidia-modeset
  bool private_folders = false;
  int proc_fd = -1;  // what becomes jobs' /proc; -1: /proc shows all processes
  bool filters_syscalls = false;
  DriverList drivers;
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
// Called in the launcher for the supervisor that it forks next: what jobs can share is made only
// once.
void prepare_for(HostConfinement& host, const LaunchRequest& request);

// The confinement of one attempt, in its supervisor.
class JobConfinement {
 public:
  ~JobConfinement();
  JobConfinement(const JobConfinement&) = delete;
  JobConfinement& operator=(const JobConfinement&) = delete;
  JobConfinement(const HostConfinement& host, std::string name)
      : host_(host), name_(std::move(name)) {}

  // Called before any process of the job exists. If the host can hold a bound, a failure to set it
  // is an error. Returns what failed, or an empty text.
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

  // Called when no process of the job is left. The groups go at once; the folder may take long.
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

// Removes what a killed supervisor has left of an attempt; the launcher calls it. A process of its
// own removes the folder, since that may take long.
void remove_leftovers(const HostConfinement& host, const std::string& name);
// Removes the folders of attempts without a record, from earlier launchers and boots.
void remove_lost_folders(const HostConfinement& host);

}  // namespace gpu_platform::node
