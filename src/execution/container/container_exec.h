#pragma once

#include <cstdint>
#include <optional>

#include "execution/container/container_run.h"
#include "model/terminal_size.h"

// What stands beside a container's main process: a command in it, or a connection to a port of its
// network. A relay starts this with root's rights, a process for each, and becomes the job's user
// itself. The two speak over a SOCK_SEQPACKET socket (`report_fd` of the place), in frames of
// model/channel.h:
//
//   relay -> us   ResizeFrame, SignalFrame; its hanging up ends the command
//   us -> relay   OpenedFrame, with the connected socket if that was asked for; at last EndFrame
//
// Neither enters a container that the kernel does not have in the attempt's cgroup.

namespace gpu_platform::execution {

struct ContainerEntryOptions {
  ContainerRunOptions place;
  std::optional<model::TerminalSize> terminal;  // the command gets one of this size
  std::uint16_t port = 0;                       // not 0: the port to connect to
};

// Runs the command of the request in the container, with descriptors 0, 1 and 2; as the container's
// user, with what it may do. Returns its exit code.
int run_container_exec(const ContainerEntryOptions& options);

// Connects to the port of 127.0.0.1 in the container's network, as the job's user and without a
// right.
int run_container_connect(const ContainerEntryOptions& options);

}  // namespace gpu_platform::execution
