#pragma once

#include <string>
#include <vector>

#include "cli/client.h"

// An array is named by its id alone; what is asked of single jobs is asked of each member.

namespace gpu_platform::cli {

// The ids of the array's members; of any other job its own.
Called<std::vector<std::string>> members_of(Client& client, const std::string& id);
// The same of several.
Called<std::vector<std::string>> with_members(Client& client, const std::vector<std::string>& ids);

}  // namespace gpu_platform::cli
