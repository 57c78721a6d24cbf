#pragma once

#include <cstdint>
#include <vector>

#include "node/identity.h"

// Lets one of our root processes become the user of a job for good, or act as that user for a
// while. Used by the job's own processes and by what stands beside them.

namespace gpu_platform::node {

struct SwitchFailure {
  const char* what = nullptr;  // null: none
  int error = 0;               // 0: done, but not what was asked for
};

// Makes what /proc shows of this process root's, and lets no process of its user trace it, until it
// executes a program or changes its ids. Raw calls only. Returns null, or what is wrong.
const char* close_to_tracing();

// Made ready where memory may be allocated; the rest is raw calls only (raw_call.h).
class UserSwitch {
 public:
  explicit UserSwitch(Identity identity);
  std::uint32_t uid() const { return identity_.uid; }

  // Sets real, effective and saved ids and groups, and drops all capabilities except root's own.
  // Then all of it is read back and compared: if a security module, a kernel or a container did
  // something else, the start ends. The process is at no moment one that its user could trace
  // before it executes, for any value of the host's fs.suid_dumpable.
  SwitchFailure become();

  // Between the two we are root with the user's rights: what is opened is opened as by the user,
  // and what only root may do can follow. False: not switched.
  bool borrow() const;
  static bool give_back();

 private:
  SwitchFailure compare();

  Identity identity_;  // its groups sorted, as the kernel keeps them
  std::vector<std::uint32_t> read_back_;
};

}  // namespace gpu_platform::node
