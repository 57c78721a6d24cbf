#pragma once

#include <span>
#include <string>

#include "model/ids.h"
#include "node/limits/limit_places.h"
#include "node/protocol.h"
#include "node/received_request.h"
#include "node/record.h"

namespace gpu_platform::node {

struct RelayOptions {
  model::AttemptId attempt;
  Record record;                        // of the attempt, which has begun
  std::string boot_id;                  // of this boot
  const LimitPlaces* limits = nullptr;  // where this host limits jobs
  bool filters_syscalls = false;        // of jobs
  std::string container_client;         // speaks to the container engine; empty: there is none
  std::string container_rules;          // the file that bounds what it does
  int channel = -1;                     // to the daemon; ChannelStart comes next
  const char* oom_score = nullptr;      // see EntryOptions
  Identity user;                        // the user of the job
  int cgroup_fd = -1;                   // the job's, open; -1: none
  int notice_fd = -1;                   // FIFO to the daemon, not blocking; -1: none
  int log_fd = -1;                      // where begin and end are told, a line each; -1: nowhere
  std::span<char> title;                // the memory of our arguments, for ps; may be empty
};

// The whole life of one channel into an attempt: starts the command, or connects, and carries
// frames until one side ends. When the client goes, a command gets SIGHUP, and SIGKILL after some
// seconds; when the job ends, so does what was started here, with the job's cgroup. Runs in a
// process forked for it, with all signals blocked and no thread beside it.
//
// It is root, where the launcher is, only until the command runs or the connection stands. Then it
// becomes the job's user for good, without a capability and closed to tracing: all that it signals,
// the kernel asks whether that user might.
[[noreturn]] void run_relay(const RelayOptions& options);

}  // namespace gpu_platform::node
