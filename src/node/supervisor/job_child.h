#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "node/folders/private_folders.h"
#include "node/limits/cpu_binding.h"
#include "node/protocol.h"
#include "node/supervisor/start_report.h"
#include "node/user_switch.h"

// The way of a job's process from its birth to its program. Its memory is a copy of the
// supervisor's, but for the report that both have, and what it takes anew counts as the job's: so
// nothing here allocates.

namespace gpu_platform::node {

// The steps of a start, in this order.
enum class StartStep : std::uint8_t {
  kSession,
  kLimits,
  kInput,
  kUser,
  kFolders,
  kWorkdir,
  kOutput,
  kError,
  kSyscalls,
  kExecute
};

// Everything the child needs, made ready before it exists.
struct JobChild {
  JobChild(const LaunchRequest& of, StartReport& to) : request(&of), report(&to), user(of.user) {}

  const LaunchRequest* request;
  StartReport* report;  // its steps are those above
  UserSwitch user;
  bool switches_user = false;
  const char* oom_score = nullptr;
  const char* search_path = nullptr;
  const CpuBinding* binding = nullptr;
  const std::vector<int>* entrances = nullptr;  // see JobLimits
  const PrivateFolders* folders = nullptr;      // null: the host's
  int mounts_fd = -1;                           // of the job's first process; -1: this is the first
  bool truncates = false;
  bool filters_syscalls = false;
  // For the process that calls a container engine (ContainerStart); -1: this is the job's own.
  int container_request_fd = -1;
  int container_report_fd = -1;
  int output_fd = -1;
  int input_fd = -1;
  // Nothing is written to it but the handle of its mounts; closed when the program is executed.
  int parent_socket = -1;
  std::vector<char*> arguments;
  std::vector<char*> environment;

  static constexpr std::size_t kMaxPath = 4096;
  char path[kMaxPath];  // of the program, while it is looked up; not initialised
};

[[noreturn]] void run_job_child(JobChild& child);

}  // namespace gpu_platform::node
