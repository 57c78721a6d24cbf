#include "execution/kubernetes/pods/client_streams.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "execution/kubernetes/pods/call_requests.h"
#include "execution/kubernetes/pods/channel_target.h"
#include "os/descriptor.h"

namespace gpu_platform::execution {

namespace {

kubernetes::StreamEnd end_of_own_process(std::int32_t exit_code) {
  return {model::ChannelEnd::kExited, static_cast<std::uint8_t>(std::clamp(exit_code, 0, 255)), {}};
}

}  // namespace

ClientStreams::ClientStreams(kubernetes::Client& client, kubernetes::Endpoint endpoint,
                             const PodAttempts& attempts, Hooks hooks)
    : client_(client),
      attempts_(attempts),
      hooks_(std::move(hooks)),
      streams_(std::move(endpoint)) {}

// The way to a pod is asked for with the credential that is good now.
void ClientStreams::open(const model::ChannelOrder& order, AttemptAccess::ChannelOpened done) {
  const model::AttemptId attempt = order.attempt;
  const StartOrder* start = attempts_.order_of(attempt);
  auto stream = channel_target(order, attempts_.pods_of(attempt),
                               start == nullptr ? nullptr : start->spec.get());
  if (!stream) return done(std::unexpected(std::move(stream).error()));
  const bool shows_latest = stream->is_attach() && !stream->without_output;
  if (!shows_latest) return open_stream(attempt, *std::move(stream), std::move(done));
  // What it printed before is in the log alone.
  const std::string path = latest_output_path_of(stream->namespace_name, stream->pod);
  client_.send({.path = path}, [this, attempt, stream = *std::move(stream),
                                done = std::move(done)](const kubernetes::Answer& answer) mutable {
    if (answer.is_ok()) stream.printed = answer.body;
    open_stream(attempt, std::move(stream), std::move(done));
  });
}

void ClientStreams::open_stream(model::AttemptId attempt, kubernetes::PodStream stream,
                                AttemptAccess::ChannelOpened done) {
  client_.ask_credential([this, attempt, stream = std::move(stream),
                          done = std::move(done)](base::Result<kubernetes::Credential> credential) {
    if (!credential) return done(std::unexpected(std::move(credential).error()));
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
      return done(std::unexpected(base::system_error("make a channel", errno)));
    }
    streams_.run(stream, *std::move(credential), os::Descriptor(ends[0]), hooks_of(attempt));
    done(os::Descriptor(ends[1]));
  });
}

kubernetes::PodStreamHooks ClientStreams::hooks_of(model::AttemptId attempt) const {
  return {.ask_end =
              [this, attempt](kubernetes::PodStreamHooks::Done done) {
                hooks_.ask_end({attempt, std::move(done)});
              },
          .on_input = [this, attempt] { hooks_.on_input(attempt); }};
}

void ClientStreams::ask_end(EndQuestion question) {
  questions_.push_back(std::move(question));
}

void ClientStreams::tell_ends() {
  std::erase_if(questions_, [this](const EndQuestion& each) {
    const std::vector<PodView> pods = attempts_.pods_of(each.attempt);
    const bool runs = !pods.empty() && !is_dead(pods.front());
    if (runs) return false;
    const bool is_known = !pods.empty() && pods.front().exit_code;
    each.done(is_known ? std::optional(end_of_own_process(*pods.front().exit_code)) : std::nullopt);
    return true;
  });
}

void ClientStreams::attempt_ended(model::AttemptId attempt) {
  for (const PodView& pod : attempts_.pods_of(attempt)) {
    streams_.process_ended(pod.namespace_name, pod.name);
  }
}

}  // namespace gpu_platform::execution
