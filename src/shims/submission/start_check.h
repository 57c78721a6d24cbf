#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "client/client.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "shims/command_call.h"

// When a job would start: the daemon's answer to `check`, for --test-only and to choose among
// nodes.

namespace gpu_platform::shims {

struct StartCheck {
  bool is_never = false;               // no node could ever hold it
  std::optional<base::Instant> start;  // absent: never, or not known
  std::vector<std::string> nodes;
  std::vector<std::string> reasons;  // why it does not start now
};

// A hold and dependencies do not count, as in Slurm.
client::Called<StartCheck> check_start(client::Client& client, const v1::JobSpec& spec,
                                       base::Instant now);

// What sbatch and srun say for --test-only, on standard error. Returns the exit code.
int tell_start(CommandCall& call, client::Client& client, const v1::JobSpec& spec);

}  // namespace gpu_platform::shims
