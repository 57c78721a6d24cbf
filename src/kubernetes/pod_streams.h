#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/result.h"
#include "base/units.h"
#include "kubernetes/endpoint.h"
#include "kubernetes/exec_plugin.h"
#include "kubernetes/pod_messages.h"
#include "os/descriptor.h"

// Channels (model/channel.h) into pods: each joins a SOCK_SEQPACKET socket, which carries frames,
// with a WebSocket to the API server, which goes on to the pod's node.
//
// - A command that has a terminal gets SIGINT, SIGQUIT and SIGTSTP as keys. Kubernetes delivers no
//   other signals; they are dropped.
// - All that goes to a pod shares one connection: a command that reads no input also holds up its
// keys
//   and sizes when the window of input is full.
// - A hang-up ends the connection, and with it the command's input and output. Kubernetes does not
//   end the command itself.
// - A connection to a port knows no end of input alone: that frame is dropped.
// - A container's own process has one client at a time; a new one takes the place of the old one.
//   Its connection to the server stays when a client hangs up, with the latest 64 KiB of output for
//   the next one: Kubernetes may close the process's input with the connection. A client that takes
//   no output for `client_timeout` is detached. The end of input is a key at a terminal.
// - A channel that loses its server ends without an EndFrame: it was cut.
//
// Memory: a channel holds at most model::kInputWindow of input and one message of output; output is
// read from the server only when the socket has taken what came before. One to a container's own
// process also keeps at most 128 KiB of its output.

namespace gpu_platform::kubernetes {

struct PodStreamLimits {
  base::Duration open_time = base::seconds(30);  // until the server has agreed
  // The server is asked for a sign of life so often; a channel that heard nothing three times is
  // cut.
  base::Duration ping_every = base::seconds(30);
  base::Duration end_time = base::seconds(3);         // for output after a command's end was told
  base::Duration client_timeout = base::seconds(10);  // with a client that takes no output
};

// What a channel to a container's own process asks of its user. Called on the thread of the
// streams.
struct PodStreamHooks {
  // Kubernetes tells that the process has closed its output, and not how it ends. `done` is called
  // when that is known, from any thread, or dropped; nothing: it will not be known.
  using Done = std::function<void(std::optional<StreamEnd>)>;
  std::function<void(Done done)> ask_end = {};
  std::function<void()> on_input = {};  // the client has sent some
};

// Thread: one of its own serves all channels; run() may be called from any.
class PodStreams {
 public:
  explicit PodStreams(Endpoint endpoint, PodStreamLimits limits = {});
  // Cuts all channels.
  ~PodStreams();
  PodStreams(const PodStreams&) = delete;
  PodStreams& operator=(const PodStreams&) = delete;

  // Begins a channel on `channel`, one end of a pair of sockets; returns at once. Every
  // failure is told there. `hooks` are those of the first channel to a process.
  void run(PodStream stream, Credential credential, os::Descriptor channel,
           PodStreamHooks hooks = {});
  // Says that a container's own process has ended, where the server may not: a channel to it ends
  // after `end_time`, as if the server had told. May be called from any thread.
  void process_ended(std::string namespace_name, std::string pod);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpu_platform::kubernetes
