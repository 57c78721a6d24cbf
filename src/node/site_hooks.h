#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "node/protocol.h"
#include "node/record.h"

// The site's own programs around every attempt, run with the launcher's rights: its prolog before
// anything of the job, its epilog when nothing of the job is left.

namespace gpu_platform::node {

inline constexpr std::uint64_t kDefaultHookTimeoutMs = 300'000;

struct SiteHooks {
  std::string prolog;  // absolute path; empty: none
  std::string epilog;
  std::uint64_t prolog_timeout_ms = kDefaultHookTimeoutMs;  // then it is killed, and has failed
  std::uint64_t epilog_timeout_ms = kDefaultHookTimeoutMs;
};

// Returns why that file may not be run with the rights of this process; empty when it may. It must
// be an executable file that belongs to root or to this user and that no other user can write to,
// in such a directory.
std::string error_in_hook(const std::string& path);
std::string error_of(const SiteHooks& hooks);
// The same for a file that decides what such a program does; it need not be executable.
std::string error_in_rules(const std::string& path);
// The same for a file that, besides, no other user may read.
std::string error_in_secret(const std::string& path);

// All that a hook gets as environment, NAME=VALUE. Of the job's own environment only what the
// platform itself has set in it.
std::vector<std::string> hook_environment(std::string_view hook, model::AttemptId attempt,
                                          const LaunchRequest& request);
// Adds what only the epilog is told.
void add_end(const EndRecord& end, std::vector<std::string>& environment);

}  // namespace gpu_platform::node
