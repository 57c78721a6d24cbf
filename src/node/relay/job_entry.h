#pragma once

#include <cstdint>
#include <string>

#include "node/limits/limit_places.h"
#include "node/protocol.h"

// Processes beside a running job's own: born into its cgroup, so that they are bound, accounted and
// ended with it, in its mount namespace, on its CPUs, as its user.

namespace gpu_platform::node {

struct EntryOptions {
  const LaunchRequest* request = nullptr;
  int cgroup_fd = -1;  // the job's; -1: none
  int job_pid = 0;     // its first process, which the caller has proved to live
  const LimitPlaces* limits = nullptr;
  std::string name;                 // of the attempt, and of its groups there
  const char* oom_score = nullptr;  // what the process gets instead of ours; null: inherited
  bool filters_syscalls = false;
  // A start is given up when one of these is readable: the client's socket (it hung up), and a
  // handle of the job's process (it ended).
  int channel = -1;
  int job_fd = -1;
};

struct Streams {
  int input = -1;
  int output = -1;
  int error = -1;
  bool is_terminal = false;  // they are one terminal, which becomes the session's
};

struct Entered {
  int pid = -1;            // a child to be waited for; -1: none
  std::uint8_t value = 0;  // without one: 127 or 126 where that is the command's fault
  std::string why;         // without one
};

// Starts the request's command as leader of a session of its own. Without a shell. Returns once the
// program is executed or that has failed, at the latest after the request's start_timeout_ms: what
// hangs on the way is killed.
Entered enter_with_command(const EntryOptions& options, const Streams& streams);

struct Connected {
  int fd = -1;
  std::string why;  // when -1
};

// Connects to a port of 127.0.0.1 as the job's user, from within its cgroup.
Connected connect_as_job(const EntryOptions& options, std::uint16_t port);

}  // namespace gpu_platform::node
