#pragma once

#include <cstdint>
#include <string>

#include "model/ids.h"
#include "node/confinement.h"
#include "node/folders/node_folders.h"
#include "node/record.h"

namespace gpu_platform::node {

// A record that is still locked has a living supervisor.
enum class Holder { kSupervisor, kNobody, kNoRecord };

struct OpenRecord {
  Holder holder = Holder::kNoRecord;
  Record record;
};

// The launcher's knowledge of attempts, which comes only from their records, and its actions on
// attempts with a supervisor that it did not start itself. A record names a process and a cgroup.
// Before an action, each is proved to belong to the attempt: a process by its pid and start time, a
// cgroup by its place, which follows from the attempt's name.
class AttemptsOnDisk {
 public:
  // All must outlive it. `token`: of the cgroups' names; base_fd -1: jobs have none here.
  AttemptsOnDisk(const NodeFolders& folders, const HostConfinement& confinement, std::string token,
                 std::string boot_id, int base_fd)
      : folders_(folders),
        confinement_(confinement),
        base_name_("gpu-platform-" + token),
        boot_id_(std::move(boot_id)),
        base_fd_(base_fd) {}

  OpenRecord look_at(model::AttemptId attempt) const;
  // Sends a signal with 64 bits to its supervisor; returns false if none lives.
  bool signal_supervisor(model::AttemptId attempt, int signal, std::uint64_t bits) const;
  // Sends SIGKILL to everything that is left of it. Returns true if nothing is left.
  bool kill_tree(model::AttemptId attempt) const;
  // Removes what a killed supervisor has left beside processes. A living supervisor does that
  // itself.
  void sweep(model::AttemptId attempt) const;
  // Returns whether its client of a container engine may have left a container there.
  bool has_container_left(model::AttemptId attempt) const;
  // Returns false if processes are left. Otherwise nothing is left: no record, no folder, no group.
  bool forget(model::AttemptId attempt) const;
  // Removes the kept output of all attempts of a job; nothing happens if there is none. The folder
  // of the thousand jobs stays: a supervisor may be about to make another folder in it.
  void remove_output(model::JobId job) const;
  // Opens its cgroup; returns -1 with errno, ENOENT if it is gone. The caller closes it.
  int open_cgroup(model::AttemptId attempt, const Record& record) const;

 private:
  int open_parent_of_cgroup(model::AttemptId attempt, const Record& record) const;
  bool is_of_this_boot(const Record& record) const;

  const NodeFolders& folders_;
  const HostConfinement& confinement_;
  const std::string base_name_;
  const std::string boot_id_;
  const int base_fd_;
};

}  // namespace gpu_platform::node
