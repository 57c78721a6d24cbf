#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "node/protocol.h"
#include "node/relay/job_entry.h"

// The same as job_entry.h for a job with an image, through the program that alone speaks to the
// container engine (execution/container). That program stays root, outside of the job's cgroup; we
// speak to it in frames over a socket, and when that closes it ends what it has begun.

namespace gpu_platform::node {

struct ContainerEntry {
  const LaunchRequest* request = nullptr;
  std::string program;
  std::string rules;    // what only root writes
  std::string cgroup;   // the attempt's, an absolute path
  std::string attempt;  // "42-1"
  int channel = -1;     // a start is given up when the client hangs up
};

struct EnteredContainer {
  int pid = -1;      // the program, a child to be waited for; -1: none
  int control = -1;  // takes ResizeFrame and SignalFrame, gives EndFrame
  std::uint8_t value = 0;
  std::string why;  // without one
};

// Starts the request's command. Returns once the engine has taken it, at the latest after the
// request's start_timeout_ms.
EnteredContainer enter_container(const ContainerEntry& entry, const Streams& streams,
                                 const std::optional<model::TerminalSize>& terminal);

// Connects to a port of 127.0.0.1 in the container's network, as the job's user.
Connected connect_in_container(const ContainerEntry& entry, std::uint16_t port);

}  // namespace gpu_platform::node
