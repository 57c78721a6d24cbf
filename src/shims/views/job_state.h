#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_platform/v1/jobs.pb.h"

// The state of a job in Slurm's words, and why it is so.

namespace gpu_platform::shims {

// A state under both of its names.
struct StateName {
  std::string_view code;  // "PD"
  std::string_view name;  // "PENDING"

  friend bool operator==(const StateName&, const StateName&) = default;
};

StateName state_of(const v1::Job& job);

// As sacct tells it: without the states in passing CONFIGURING and COMPLETING, which programs that
// read sacct take for ends.
StateName recorded_state_of(const v1::Job& job);

// The states of the platform that may be one of Slurm's states ("PD", "pending"), for filters of
// the daemon; exact is state_of. Nothing for what is no state.
std::optional<std::vector<std::string>> platform_states(std::string_view name);
bool is_in_state(const StateName& state, const std::vector<std::string>& names);
bool has_ended(const v1::Job& job);

// Why it waits or how it ended, in Slurm's words: "Resources", "TimeLimit".
std::string reason_of(const v1::Job& job);

}  // namespace gpu_platform::shims
