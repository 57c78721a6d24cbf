#pragma once

#include <memory>

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
// - A channel that loses its server ends without an EndFrame: it was cut.
//
// Memory: a channel holds at most model::kInputWindow of input and one message of output; output is
// read from the server only when the socket has taken what came before.

namespace gpu_platform::kubernetes {

struct PodStreamLimits {
  base::Duration open_time = base::seconds(30);  // until the server has agreed
  // The server is asked for a sign of life so often; a channel that heard nothing three times is
  // cut.
  base::Duration ping_every = base::seconds(30);
  base::Duration end_time = base::seconds(3);  // for output after a command's end was told
};

// Thread: one of its own serves all channels; run() may be called from any.
class PodStreams {
 public:
  explicit PodStreams(Endpoint endpoint, PodStreamLimits limits = {});
  // Cuts all channels.
  ~PodStreams();
  PodStreams(const PodStreams&) = delete;
  PodStreams& operator=(const PodStreams&) = delete;

  // Begins a channel on `channel`, one end of a pair of sockets; returns at once. Whatever goes
  // wrong is told there.
  void run(PodStream stream, Credential credential, os::Descriptor channel);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpu_platform::kubernetes
