#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "node/confinement.h"
#include "node/protocol.h"

namespace gpu_platform::node {

struct JobStartOptions {
  const LaunchRequest* request = nullptr;
  int output_fd =
      -1;  // becomes stdout and stderr; -1: the request's own output file is opened for them
  int input_fd =
      -1;  // becomes stdin; with request->terminal that, and output_fd too; -1: /dev/null
  int cgroup_fd = -1;                     // -1: none
  JobConfinement* confinement = nullptr;  // set up
  // What to run instead of the request's command, its texts ending as those of a request; empty:
  // that command.
  std::vector<std::string_view> command;
  std::vector<std::string> more_environment;  // NAME=VALUE
  // Not the job's first process: it goes into the folders of that one, and empties no file.
  bool is_later = false;
  const char* oom_score =
      nullptr;  // what the job gets instead of the node part's own; null: inherited
};

struct JobStart {
  int pid =
      -1;  // of a child to be waited for, also when the program was not executed; -1: no child
  bool executed = false;
  int exit_code = 0;   // when not executed: see EndKind::kNotStarted
  std::string detail;  // when not executed: which step failed and why
  int mounts_fd = -1;  // of the folders that were made private for it; the caller's to close
};

// Starts the command: within its confinement, as its user, in its directory, with its umask,
// environment and output, as leader of a session of its own. What it names, directory and output
// file, is opened with the rights of its user, and nothing that it executes gains rights that this
// one has not (no_new_privs). Returns once the program is executed or that has failed. Without
// a shell.
JobStart start_job(const JobStartOptions& options);

}  // namespace gpu_platform::node
