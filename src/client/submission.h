#pragma once

#include <map>
#include <string>

#include "client/client.h"
#include "client/session.h"
#include "gpu_platform/v1/jobs.pb.h"

// Sending a job to the daemon, once, also if the connection breaks.

namespace gpu_platform::client {

// Returns a unique request id, or an empty one if the system has no randomness.
std::string random_request_id();

// The environment of the caller, by name. Values that JSON cannot carry are left out, with a
// warning that gives the name: a value is never shown.
std::map<std::string, std::string> environment_of(Console& console);

// The daemon's answer. The request is sent again when its answer was lost, which its `request_id`
// makes safe; without one it is not.
Called<std::string> submit_job(Console& console, Client& client, const v1::JobSpec& job);

}  // namespace gpu_platform::client
