#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/ids.h"
#include "model/job.h"

namespace gpu_platform::model {

// Who asks, as the door established it (peer credentials of the socket).
struct Caller {
  std::string user;
  std::uint32_t uid = 0;
  bool is_administrator = false;  // root: sees and changes everybody's jobs
};

// Accept a job. `environment` is what the job's processes get, as NAME=VALUE strings each ended by
// NUL; it goes to the store's owner-only table and into no event, list or log.
struct SubmitJob {
  JobSpec spec;
  std::string environment;
};

// Cancel (SIGTERM, then SIGKILL after the grace time) or kill (at once).
struct StopJob {
  JobId job;
  bool without_grace = false;
};

// Names GPUs: by `uuid`, by `node` and `index`, or all of a node by `node` alone.
struct GpuSelector {
  std::string uuid;
  std::string node;
  std::optional<std::uint32_t> index;
};

enum class GpuAction : std::uint8_t {
  kDrain,        // finish what runs, start nothing
  kTakeOffline,  // take out; refused while jobs hold it, unless forced
  kBringOnline,
};

// An operator's action. Of a whole node it concerns the node too: jobs without GPUs as well.
struct ChangeGpus {
  GpuSelector which;
  GpuAction action = GpuAction::kDrain;
  std::string reason;  // in the operator's words; may be empty
  bool force = false;  // kTakeOffline: stops the jobs that hold it; they are queued again
};

struct Command {
  Caller caller;
  std::variant<SubmitJob, StopJob, ChangeGpus> body;
};

// What a durable, applied command answers.
struct CommandReply {
  JobId job;
  bool changed = true;  // false: a repeated submission, a stop of a job that had ended, a GPU that
                        // was so already
  std::vector<GpuRef> gpus;  // those that ChangeGpus changed
};

}  // namespace gpu_platform::model
