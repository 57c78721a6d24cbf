#pragma once

#include <cstdint>
#include <string>

#include "node/protocol.h"
#include "node/received_request.h"
#include "node/relay/relay.h"

namespace gpu_platform::node {

// A channel that stands: a command that runs in the job, or a connection to one of its ports.
struct OpenedChannel {
  ChannelStart start;     // what the client asks for
  LaunchRequest request;  // of the attempt
  int job_fd = -1;        // the job's process; -1: another process looks at it
  int pid = -1;           // of the command, a child to be waited for; -1: there is none
  int terminal = -1;      // our side of the command's
  int control = -1;       // to the program beside a container; -1: there is none
  int freezer = -1;       // thaws a job that takes turns; -1: it takes none
  int input = -1;         // what the client types goes here, without blocking
  int output = -1;
  int error = -1;                  // -1: it has none of its own
  std::uint8_t refusal_value = 0;  // of a channel that does not stand: see refuse_channel
};

// Reads from the channel what it is for, opens it, and gives up all rights but the user's. Returns
// why it failed; empty: it stands.
std::string open_channel(const RelayOptions& options, OpenedChannel& opened);

}  // namespace gpu_platform::node
