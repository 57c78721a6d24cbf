#pragma once

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "kubernetes/pod_streams.h"
#include "kubernetes/scripted_server_fixture.h"
#include "model/channel.h"

// A fixture for tests: the daemon's side of channels into pods.

namespace gpu_platform::kubernetes {

// All that came out of a channel until its end.
struct Heard {
  bool is_open = false;
  std::string output;
  std::string errors;
  std::uint64_t taken = 0;
  std::uint64_t received = 0;            // before, as the first frame says
  std::optional<model::ChannelEnd> end;  // none: it was cut
  int value = 0;
  std::string text;
};

// The daemon's end of a channel.
class Channel {
 public:
  Channel(PodStreams& streams, PodStream stream, Credential credential = {},
          PodStreamHooks hooks = {}) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    end_.reset(ends[0]);
    streams.run(std::move(stream), std::move(credential), os::Descriptor(ends[1]),
                std::move(hooks));
  }

  void send(const model::Frame& frame) {
    const std::string bytes = model::encode_frame(frame);
    EXPECT_EQ(::send(end_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void hang_up() { end_.reset(); }

  // Takes one frame in. False: there are no more.
  bool hear() {
    pollfd handle{end_.get(), POLLIN, 0};
    const auto timeout_ms = static_cast<int>(base::whole_milliseconds(kTimeout));
    const bool is_there = ::poll(&handle, 1, timeout_ms) == 1;
    EXPECT_TRUE(is_there) << "nothing comes";
    if (!is_there) return false;
    std::string bytes(model::kMaxFrame + 1, '\0');
    ssize_t got = ::recv(end_.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == ECONNRESET) got = ::recv(end_.get(), bytes.data(), bytes.size(), 0);
    if (got <= 0) return false;
    bytes.resize(static_cast<std::size_t>(got));
    const auto frame = model::decode_frame(bytes);
    EXPECT_TRUE(frame.has_value());
    if (frame) note(*frame);
    return frame.has_value();
  }
  const Heard& listen() {
    while (hear()) {
    }
    return heard;
  }
  bool hear_output(std::string_view text) {
    while (heard.output.find(text) == std::string::npos) {
      if (!hear()) return false;
    }
    return true;
  }

  Heard heard;

 private:
  void note(const model::Frame& frame) {
    EXPECT_FALSE(heard.end.has_value()) << "something came after the end";
    if (const auto* out = std::get_if<model::OutputFrame>(&frame)) heard.output += out->bytes;
    if (const auto* err = std::get_if<model::ErrorOutputFrame>(&frame)) heard.errors += err->bytes;
    if (const auto* taken = std::get_if<model::TakenFrame>(&frame)) heard.taken += taken->bytes;
    if (const auto* opened = std::get_if<model::OpenedFrame>(&frame)) {
      heard.is_open = true;
      heard.received = opened->received;
    }
    if (const auto* end = std::get_if<model::EndFrame>(&frame)) {
      heard.end = end->end;
      heard.value = end->value;
      heard.text = end->text;
    }
  }

  os::Descriptor end_;
};

}  // namespace gpu_platform::kubernetes
