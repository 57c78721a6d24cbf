#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "listener/link.h"

namespace gpu_platform::listener {

struct ConfinementOptions {
  // The user to become, for a listener that is started as root. Empty: the user that it has.
  struct User {
    std::uint32_t uid = 0;
    std::uint32_t gid = 0;
  };
  std::optional<User> user;
  std::uint64_t open_files = 0;  // at most, as far as the limit allows
};

// Gives up, for this process and for good, everything that the listener does not need: rights,
// files, most system calls, memory that others may read. Call it with one thread; later threads
// have it from the first. Returns the walls that stand and those that this kernel does not give. An
// error: the process still has rights and must end.
base::Result<std::vector<Guard>> confine(const ConfinementOptions& options);

}  // namespace gpu_platform::listener
