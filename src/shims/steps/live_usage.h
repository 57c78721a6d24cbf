#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/text/json_view.h"
#include "shims/command_call.h"

// What the tasks of a running job use now, for sstat. A process looks at it that enters the job as
// its user (the API's exec): the daemon samples nothing.

namespace gpu_platform::shims {

// A process of the job, as /proc tells of it.
struct JobProcess {
  std::int64_t pid = 0;
  std::string step;  // its number; empty: it belongs to the batch script
  std::int64_t task = 0;
  std::string node;
  std::int64_t cpu_ms = 0;      // of it, and of the children that it waited for
  std::int64_t peak_bytes = 0;  // its largest resident set
  std::int64_t resident_bytes = 0;
};

struct LiveTask {
  std::int64_t task = 0;
  std::string node;
  std::int64_t cpu_ms = 0;
  std::int64_t peak_bytes = 0;
  std::vector<std::int64_t> pids;
};

// The tasks of each step, by its number and ascending task; "batch" has one of all processes, whose
// memory is that of all together. Pure.
std::map<std::string, std::vector<LiveTask>> tasks_by_step(
    const std::vector<JobProcess>& processes);

// These write one line of JSON and read it back.
cli::Json live_document(const std::vector<JobProcess>& processes);
std::vector<JobProcess> processes_of(const cli::Json& document);

// Asks for the processes of a running job.
client::Called<std::vector<JobProcess>> live_processes(CommandCall& call, client::Client& client,
                                                       const std::string& job);

}  // namespace gpu_platform::shims
