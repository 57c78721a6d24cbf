#pragma once

#include <string>
#include <vector>

#include "client/client.h"
#include "gpu_platform/v1/jobs.pb.h"

// An array is named by its id alone; what is asked of single jobs is asked of each member.

namespace gpu_platform::client {

// The ids of the members of the array of which `job` is found under `id`; of any other job its own.
std::vector<std::string> members_in(const v1::Job& job, const std::string& id);
// The same, asked of the daemon.
Called<std::vector<std::string>> members_of(Client& client, const std::string& id);

}  // namespace gpu_platform::client
