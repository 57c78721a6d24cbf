#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gpu_platform::shims {

// "a1,b[1-2]": the names as Slurm writes a list of them, each once, in the order of people. Numbers
// of different lengths with leading zeros stay apart. Pure.
std::string host_list(std::vector<std::string> names);

// Returns the places of the names in the order of host_list(): of {"n10", "n9"} 1 and 0.
std::vector<std::size_t> host_order(const std::vector<std::string>& names);

// The same in the order of the names, also those that come twice: "n[2,1],a1".
std::string host_list_in_order(const std::vector<std::string>& names);

}  // namespace gpu_platform::shims
