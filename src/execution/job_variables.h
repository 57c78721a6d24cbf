#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "execution/engine.h"

// The environment variables of jobs, as far as they are the same for all engines. Pure.

namespace gpu_platform::execution {

using Variables = std::map<std::string, std::string, std::less<>>;

// Reads NAME=VALUE entries, each ended by a NUL. Entries without a name or '=' cannot be named and
// are dropped; of two with one name the first counts, as for getenv. Variables of the platform are
// dropped, because a job submitted from within a job must not believe it is that one.
Variables parse_variables(std::string_view submitted);

// Sets the variables that identify the attempt: its job, and its place in an array. The variables
// of an array that are passed on by chance are removed.
void set_identity(Variables& variables, const StartOrder& order);

// Sets the variables of a job that has a part of a GPU: how much, and what keeps it to it.
void set_share(Variables& variables, const StartOrder& order);

// Returns the indices of GPUs within their node, and what the driver calls them; one each, in their
// order.
std::vector<std::uint32_t> indices_of(const std::vector<LaunchGpu>& gpus);
std::vector<std::string> uuids_of(const std::vector<LaunchGpu>& gpus);

// Returns the port at which the processes of a gang find each other, another for each attempt.
std::uint64_t gang_port(model::AttemptId attempt);

// NAME=VALUE each, ascending by name.
std::vector<std::string> entries_of(const Variables& variables);

}  // namespace gpu_platform::execution
