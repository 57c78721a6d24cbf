#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/ids.h"
#include "model/job.h"
#include "model/job_spec.h"

// What the engine and the queue say to each other about workloads that were not submitted through
// the platform.

namespace gpu_platform::execution {

// All pods of the workload wait only for the platform: it is to be queued.
struct WorkloadSubmission {
  std::string key;      // of its WorkloadRef; spec.workload has it, too
  std::string user;     // who pays; empty: its namespace names none
  std::string team;     // empty: the user's
  model::JobSpec spec;  // without a user, a team and a nodelist
  // The nodes that it may have, by name; empty: all.
  std::vector<std::string> nodes;
};

// How a workload stands. Of two that cross, the later one counts.
struct WorkloadNews {
  enum class State : std::uint8_t {
    kRefused,    // it has no job; `text` says why
    kWaiting,    // its job waits, for `reason`
    kActive,     // its job starts, runs or stops
    kEnded,      // its job has come to its end; pods that come now are a new job
    kCancelled,  // its job was cancelled: no pod of the workload starts any more
  };
  std::string key;
  State state = State::kWaiting;
  model::JobId job;    // invalid: kRefused
  std::string reason;  // in CamelCase: "NoCapacity"
  std::string text;    // one line
};

// Why a job ended whose workload makes no more pods.
inline constexpr std::string_view kWorkloadDeleted = "its workload was deleted";
inline constexpr std::string_view kWorkloadFinished = "its workload has finished";
inline constexpr std::string_view kWorkloadSuspended = "its workload was suspended";

// Takes the engine's side. Any thread; the calls return at once.
class WorkloadPort {
 public:
  virtual ~WorkloadPort() = default;
  // May be repeated: a workload has one job at a time.
  virtual void submit(WorkloadSubmission submission) = 0;
  // Its job waits, and there is no pod of it any more, nor will there be; `why` is one of the
  // above.
  virtual void withdraw(std::string key, std::string_view why) = 0;
};

}  // namespace gpu_platform::execution
