#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace gpu_platform::host {

// User ids that nothing on this host has, for a process that no other process may signal.

// Returns the first of the candidates, numbers beyond the reach of accounts and of subordinate ids,
// that is not taken. `start` tells where among them to begin, so that several processes that choose
// at the same time choose differently.
std::optional<std::uint32_t> unused_uid(std::uint32_t start,
                                        const std::function<bool(std::uint32_t)>& is_taken);

// Returns every user id that a process has: real, effective, saved or for files. `proc`: /proc.
std::set<std::uint32_t> uids_of_processes(const std::string& proc);

// Returns whether the number is a line's third field in the text of /etc/passwd or /etc/group.
bool has_number(std::string_view accounts, std::uint32_t number);

// Returns whether this user namespace has the number, by the text of /proc/self/uid_map.
bool is_mapped(std::string_view uid_map, std::uint32_t uid);

}  // namespace gpu_platform::host
