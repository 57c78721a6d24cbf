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

// What the launcher knows of attempts, all of it from their records, and what it can do to one
// whose supervisor it did not start itself. A record says which process and which cgroup are meant;
// before anything is done to either it is proved to be that attempt's: a process by its pid and
// start time, a cgroup by its place, which follows from the attempt's name.
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
  // To its supervisor, with 64 bits; false: none lives.
  bool signal_supervisor(model::AttemptId attempt, int signal, std::uint64_t bits) const;
  // SIGKILL to whatever is left of it. True when nothing is.
  bool kill_tree(model::AttemptId attempt) const;
  // What a supervisor that was killed has left beside processes. One that lives does it itself.
  void sweep(model::AttemptId attempt) const;
  // False: processes are left. Else nothing is: no record, no folder, no group.
  bool forget(model::AttemptId attempt) const;
  // Its cgroup, open; -1 with errno: ENOENT where it is gone. The caller closes it.
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
