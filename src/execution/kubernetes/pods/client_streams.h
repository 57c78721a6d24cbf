#pragma once

#include <functional>
#include <vector>

#include "execution/attempt_access.h"
#include "execution/kubernetes/pods/pod_attempts.h"
#include "kubernetes/client.h"
#include "kubernetes/endpoint.h"
#include "kubernetes/pod_streams.h"
#include "model/channel.h"
#include "model/ids.h"

namespace gpu_platform::execution {

// A channel asks how its job's main process ended. `done` gets the end; nothing: it will not be
// known.
struct EndQuestion {
  model::AttemptId attempt;
  kubernetes::PodStreamHooks::Done done;
};

// Channels of clients into the pods of attempts, and what they must know of these attempts: that
// they have ended, and how. Kubernetes tells a client that is attached only that the process has
// closed its output.
// Thread: the engine's; the channels themselves are served by a thread of their own
// (kubernetes/pod_streams.h).
class ClientStreams {
 public:
  // Called on the thread of the channels. The owner carries each call to the engine's thread: a
  // question to ask_end() below.
  struct Hooks {
    std::function<void(EndQuestion)> ask_end;
    std::function<void(model::AttemptId)> on_input;  // a client of the job has sent input
  };
  // The client and the attempts outlive it.
  ClientStreams(kubernetes::Client& client, kubernetes::Endpoint endpoint,
                const PodAttempts& attempts, Hooks hooks);

  // Opens a channel (AttemptAccess::open_channel). A client that attaches is shown the last lines
  // of the log first; if these cannot be had, the channel is opened all the same.
  void open(const model::ChannelOrder& order, AttemptAccess::ChannelOpened done);
  void ask_end(EndQuestion question);
  // Answers the questions about attempts that do not run any more. Call when pods have changed.
  void tell_ends();
  // Ends the channels of an attempt that has ended: a node that is lost tells no client of its end.
  void attempt_ended(model::AttemptId attempt);

 private:
  void open_stream(model::AttemptId attempt, kubernetes::PodStream stream,
                   AttemptAccess::ChannelOpened done);
  kubernetes::PodStreamHooks hooks_of(model::AttemptId attempt) const;

  kubernetes::Client& client_;
  const PodAttempts& attempts_;
  const Hooks hooks_;
  std::vector<EndQuestion> questions_;  // that wait for an end
  kubernetes::PodStreams streams_;      // last: its thread calls the hooks
};

}  // namespace gpu_platform::execution
