#pragma once

#include <sys/resource.h>

#include <optional>
#include <string>

#include "base/units.h"

namespace gpu_platform::node {

// All processes of one attempt, from its supervisor: those in its cgroup or, where the node part
// may make no cgroups, the descendants of this process, which is their subreaper.
class AttemptProcesses {
 public:
  // `base_fd`: the cgroup below which the attempt's is made, or -1. Not owned.
  AttemptProcesses(int base_fd, std::string name) : base_fd_(base_fd), name_(std::move(name)) {}
  AttemptProcesses(const AttemptProcesses&) = delete;
  AttemptProcesses& operator=(const AttemptProcesses&) = delete;

  // Makes the cgroup where there is a base. Returns what failed; empty: nothing.
  std::string make();
  // -1: there is none.
  int cgroup() const { return cgroup_; }
  // Removes the cgroup if no process is in it.
  void remove();

  void signal(int signal);
  // To those in a container alone.
  void signal_contained(int signal);
  void kill();
  // Lets processes be born into the cgroup again after a container engine has divided it. Nothing
  // happens where it is whole.
  void give_room();

  struct Exited {
    int pid = -1;
    int status = 0;
    rusage usage{};
  };
  // A child that has ended and was not told before.
  std::optional<Exited> next_exited();

  // A job that takes turns on a GPU may be frozen (node/cgroup_freezer.h). wake(): it gets a turn
  // now, for what is sent to it. hold_awake(): it stays awake until let_go(), because it is being
  // started or ended. Nothing happens where there is no cgroup.
  void wake() const;
  void hold_awake() const;
  void let_go() const;
  // Makes handle() readable (POLLPRI) when that has changed.
  bool stands_still();

  enum class Cgroup { kKeep, kRemove };
  // No process is left. The cgroup goes with the last one unless it is to be kept.
  bool are_gone(Cgroup what) const;
  // Makes handle() readable (POLLPRI) once no process is left. False: none is left already.
  bool watch(Cgroup what);
  int handle() const { return events_; }

  // CPU time of all of them so far; without a cgroup, of the children that were reaped.
  base::Duration cpu_time() const;

 private:
  bool open_events();

  int base_fd_;
  std::string name_;
  bool is_made_ = false;
  int cgroup_ = -1;
  int events_ = -1;
  bool has_no_children_ = false;
};

}  // namespace gpu_platform::node
