#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "client/session.h"

// The places where a user's own daemon keeps its data and answers, and where clients look for it.
// Both sides come to the same places, also where a login has not set everything up: after su, in a
// container, in CI.

namespace gpu_platform::client {

// Returns gpu-platform-UID in the folder for temporary files (/tmp), for a user without any other
// folder. Another user could make it first, so it is used only if it belongs to the user.
std::string fallback_folder(const ProcessEnvironment& process_environment);

// Returns the socket on which `serve` answers. Root's is in /run/gpu-platform. Another user's is in
// the first of $XDG_RUNTIME_DIR, /run/user/UID and the fallback that belongs to the user.
std::string socket_to_serve(const ProcessEnvironment& process_environment);

// Returns the sockets that a client tries, in this order: those that the user's own daemon may
// have, then root's. A folder of another user is left out, because a program there could pretend to
// be the daemon.
std::vector<std::string> sockets_to_try(const ProcessEnvironment& process_environment);

// Returns the data directory of `serve`. Root's is /var/lib/gpu-platform. Another user's is
// gpu-platform in $XDG_STATE_HOME or ~/.local/state, or data in the fallback if these belong to
// another user.
std::string default_data_dir(const ProcessEnvironment& process_environment);

// Makes the fallback folder, for the user alone, if `path` lies in it. kPermissionDenied if it
// belongs to another user.
base::Status make_fallback_folder(const ProcessEnvironment& process_environment,
                                  const std::string& path);

}  // namespace gpu_platform::client
