#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "config/configuration.h"
#include "host/user_directory.h"
#include "model/user_range.h"

// The users of this host as the configuration and the host's own files have them.

namespace gpu_platform::bin {

// Returns the users that may have jobs and credentials. `runs_as_itself`: without root jobs run as
// the daemon's own user, which is then a user like others.
base::Result<model::UserRange> users_of_site(const config::Configuration& configuration,
                                             bool runs_as_itself);

// The user that the listener becomes, if the daemon runs as root: the one that the configuration
// names, which may not be one of `users`, else a number that nothing on this host has, so that no
// job and no process of another service may signal it. May take some seconds.
struct ListenerUser {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};
base::Result<ListenerUser> listener_user(const std::string& name, const model::UserRange& users,
                                         host::UserDirectory& directory);

}  // namespace gpu_platform::bin
