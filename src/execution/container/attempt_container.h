#pragma once

#include <string>
#include <string_view>

#include "execution/container/container_failure.h"
#include "execution/container/create_body.h"
#include "execution/container/engine_calls.h"
#include "os/descriptor.h"

// The running container of an attempt, for what stands beside its main process. Every user of
// the engine can set our labels, so they only help to search: what counts is that the kernel has
// its processes in the attempt's cgroup.

namespace gpu_platform::execution {

// A process of the host, held against reuse of its number.
struct HeldProcess {
  int pid = 0;
  os::Descriptor handle;

  bool is_there() const { return handle.is_open(); }
  bool has_ended() const;
};

// Opens the process if it is in the cgroup or below it; `cgroup` is an absolute path.
HeldProcess hold_process_in(const std::string& cgroup, int pid);
// Opens the process if it has the PID namespace of the other one.
HeldProcess hold_process_beside(const HeldProcess& other, int pid);

// Opens the first process of a container; it is one if it has a PID namespace of its own.
HeldProcess hold_first_process(int pid);
// Sends the signal to every process of the container whose first one this is.
void signal_processes_beside(const HeldProcess& first, int signal);

struct AttemptContainer {
  std::string id;
  HeldProcess first;  // its first process
};

ContainerDone<AttemptContainer> find_container(EngineCalls& engine, const std::string& cgroup,
                                               const std::string& attempt);

// Returns why a process that the engine started in the container may not stay there; empty: it may.
// It is what the plan says, and its bounding set has no capability that the container's first
// process lacks. The texts are those of /proc/PID/status.
std::string error_in_entered(std::string_view status, std::string_view status_of_first,
                             const ContainerPlan& plan);

}  // namespace gpu_platform::execution
