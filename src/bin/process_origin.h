#pragma once

#include <cstdint>

#include "host/user_directory.h"
#include "model/audit.h"

namespace gpu_platform::bin {

// A process that acts on the daemon from outside of the API, as the kernel reports it.
struct ActingProcess {
  std::uint32_t uid = 0;
  std::int32_t pid = 0;
};

// Returns the origin for the audit trail: the user as the accounts of the system know it, or its
// number where they do not answer. Waits for that.
model::Origin origin_of(host::UserDirectory& users, model::Door door, ActingProcess process);

}  // namespace gpu_platform::bin
