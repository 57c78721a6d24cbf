#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "host/user_directory.h"
#include "model/ids.h"

namespace gpu_platform::monitoring {

struct ProcessOwner {
  bool exists = false;                      // false: it has ended
  std::uint32_t uid = 0;                    // of one that exists
  std::string user;                         // name, or "uid 1001" where none is known
  std::string command;                      // its name, as the kernel keeps it
  std::optional<model::AttemptId> attempt;  // none: of no job of ours
  bool is_server = false;                   // an MPS server of ours, which serves jobs
};

// MPS servers of ours run in cgroups beside those of attempts, with names that begin so.
inline constexpr std::string_view kServerCgroups = "mps-";

// Finds the owner of a process of this host, through /proc. The processes of a job are recognised
// by their cgroup, or, without cgroups, by an ancestor that is the first process of an attempt. Not
// thread-safe.
class ProcessOwners {
 public:
  // Returns the attempt with this first process, if there is one. Empty: the cgroup alone tells.
  using AttemptOfPid = std::function<std::optional<model::AttemptId>(std::uint64_t pid)>;

  // `cgroup_base`: the absolute folder below which each attempt has its cgroup; empty: none.
  // `users` outlives this.
  ProcessOwners(const std::string& cgroup_base, host::UserDirectory& users);

  ProcessOwner find(std::uint32_t pid, const AttemptOfPid& attempt_of_pid);

 private:
  std::string user_name(uid_t uid) const;

  std::string cgroup_prefix_;  // as /proc/PID/cgroup writes it, with a slash on both ends
  host::UserDirectory& users_;
};

// Whether the text of a /proc/PID/cgroup is that of an MPS server of ours.
bool is_cgroup_of_server(std::string_view proc_cgroup, std::string_view prefix);

// "42-1" below the prefix in the text of a /proc/PID/cgroup: attempt 1 of job 42.
std::optional<model::AttemptId> attempt_of_cgroup(std::string_view proc_cgroup,
                                                  std::string_view prefix);

}  // namespace gpu_platform::monitoring
