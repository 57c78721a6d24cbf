#pragma once

#include <string>
#include <vector>

#include "cli/client.h"
#include "cli/json_view.h"

// An array is named by its id alone; what is asked of single jobs is asked of each member.

namespace gpu_platform::cli {

// The ids of the members of the array of which `job` is found under `id`; of any other job its own.
std::vector<std::string> members_in(const Json& job, const std::string& id);
// The same, asked of the daemon.
Called<std::vector<std::string>> members_of(Client& client, const std::string& id);
// The same of several.
Called<std::vector<std::string>> with_members(Client& client, const std::vector<std::string>& ids);

}  // namespace gpu_platform::cli
