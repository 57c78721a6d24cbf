#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <future>
#include <optional>
#include <string>
#include <utility>

#include "execution/process/engine_fixture.h"
#include "model/channel.h"

// A fixture for tests: channels into running attempts, as the daemon opens them.

namespace gpu_platform::execution::testing {

// Everything that came out of a channel until its end.
struct Heard {
  bool opened = false;
  std::string output;
  std::string errors;
  std::uint64_t taken = 0;
  std::optional<model::ChannelEnd> end;  // none: it was cut
  std::uint8_t value = 0;
  std::string text;
};

class ChannelTest : public EngineTest, public ::testing::WithParamInterface<Mode> {
 protected:
  ChannelTest() : EngineTest(GetParam()) {}

  StartOrder sleeper(std::uint64_t job = 1) {
    const StartOrder start = shell(job, "exec sleep 1000");
    engine_->start(start);
    EXPECT_TRUE(observed_->wait_started(start.attempt));
    return start;
  }
  base::Result<os::Descriptor> open(model::ChannelOrder order) {
    std::promise<base::Result<os::Descriptor>> opened;
    engine_->open_channel(std::move(order), [&](base::Result<os::Descriptor> channel) {
      opened.set_value(std::move(channel));
    });
    return opened.get_future().get();
  }
  os::Descriptor open_shell(const StartOrder& job, const std::string& script) {
    auto channel = open({job.attempt, {"/bin/sh", "-c", script}, std::nullopt});
    EXPECT_TRUE(channel.has_value()) << channel.error().message;
    return channel ? *std::move(channel) : os::Descriptor();
  }
  static bool send(const os::Descriptor& channel, std::string_view packet) {
    return ::send(channel.get(), packet.data(), packet.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(packet.size());
  }
  static bool send(const os::Descriptor& channel, const model::Frame& frame) {
    return send(channel, model::encode_frame(frame));
  }
  // The next packet; nothing at the end, and when none comes for long.
  static std::string receive(const os::Descriptor& channel) {
    pollfd handle{channel.get(), POLLIN, 0};
    if (poll(&handle, 1, 60'000) != 1) return {};
    std::string bytes(model::kMaxFrame + 1, '\0');
    ssize_t got = ::recv(channel.get(), bytes.data(), bytes.size(), 0);
    // Told once, before its last words, of a side that left something unread.
    if (got < 0 && errno == ECONNRESET) {
      got = ::recv(channel.get(), bytes.data(), bytes.size(), 0);
    }
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return bytes;
  }
  static Heard listen(const os::Descriptor& channel) {
    Heard heard;
    while (true) {
      const std::string packet = receive(channel);
      const auto frame = model::decode_frame(packet);
      if (!frame) return heard;
      if (const auto* out = std::get_if<model::OutputFrame>(&*frame)) heard.output += out->bytes;
      if (const auto* err = std::get_if<model::ErrorOutputFrame>(&*frame)) {
        heard.errors += err->bytes;
      }
      if (const auto* taken = std::get_if<model::TakenFrame>(&*frame)) heard.taken += taken->bytes;
      heard.opened = heard.opened || std::holds_alternative<model::OpenedFrame>(*frame);
      if (const auto* end = std::get_if<model::EndFrame>(&*frame)) {
        heard.end = end->end;
        heard.value = end->value;
        heard.text = end->text;
      }
    }
  }
};

}  // namespace gpu_platform::execution::testing
