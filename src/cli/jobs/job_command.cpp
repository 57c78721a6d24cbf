#include "cli/jobs/job_command.h"

#include <array>
#include <optional>
#include <variant>

#include <boost/asio/io_context.hpp>

#include "client/channel.h"
#include "client/exec_session.h"

namespace gpu_platform::cli {

namespace {

constexpr std::size_t kMaxErrorBytes = 4096;

// One command; everything on the io context's thread.
class CommandRun {
 public:
  CommandRun(boost::asio::io_context& io, std::shared_ptr<client::Channel> channel,
             CommandStreams streams)
      : io_(io), channel_(std::move(channel)), streams_(std::move(streams)) {}

  std::optional<CommandEnd> run() {
    channel_->begin({[this](const model::Frame& frame) { take(frame); }, [this] { io_.stop(); }});
    io_.run();
    return std::move(end_);
  }

 private:
  void take(const model::Frame& frame) {
    if (std::holds_alternative<model::OpenedFrame>(frame)) {
      was_started_ = true;
      send_input();
    } else if (const auto* taken = std::get_if<model::TakenFrame>(&frame)) {
      window_.taken(taken->bytes);
      send_input();
    } else if (const auto* output = std::get_if<model::OutputFrame>(&frame)) {
      if (!streams_.output(output->bytes)) finish(0);
    } else if (const auto* error = std::get_if<model::ErrorOutputFrame>(&frame)) {
      errors_ += error->bytes;
      if (errors_.size() > kMaxErrorBytes) errors_.erase(0, errors_.size() - kMaxErrorBytes);
    } else if (const auto* end = std::get_if<model::EndFrame>(&frame)) {
      take_end(*end);
    }
  }

  void send_input() {
    while (was_started_ && !has_sent_all_ && window_.most() > 0) {
      const std::size_t count =
          streams_.input ? streams_.input({bytes_.data(), window_.most()}) : std::size_t{0};
      if (count == 0) {
        has_sent_all_ = true;
        channel_->send(model::EndOfInputFrame{});
        return;
      }
      window_.sent(count);
      channel_->send(model::InputFrame{{bytes_.data(), count}});
    }
  }

  void take_end(const model::EndFrame& end) {
    if (!end.text.empty()) errors_ = end.text;
    if (end.end == model::ChannelEnd::kNotOpened) was_started_ = false;
    const bool was_signalled = end.end == model::ChannelEnd::kSignalled;
    finish(was_signalled ? 128 + end.value : static_cast<int>(end.value));
  }

  void finish(int code) {
    if (end_) return;
    end_ = CommandEnd{code, was_started_, std::move(errors_)};
    channel_->close();
    io_.stop();
  }

  boost::asio::io_context& io_;
  std::shared_ptr<client::Channel> channel_;
  CommandStreams streams_;
  client::InputWindow window_;
  std::array<char, model::kMaxFrameBytes> bytes_;
  std::string errors_;
  bool was_started_ = false;
  bool has_sent_all_ = false;
  std::optional<CommandEnd> end_;
};

}  // namespace

Called<CommandEnd> run_in_job(Client& client, const std::string& job,
                              const std::vector<std::string>& command, CommandStreams streams) {
  boost::asio::io_context io;
  auto channel = client::Channel::open(io, client, client::exec_target(job, command, std::nullopt));
  if (!channel) return std::unexpected(channel.error());
  auto end = CommandRun(io, *std::move(channel), std::move(streams)).run();
  if (end) return *std::move(end);
  return std::unexpected(
      Failure{Failure::Kind::kBroken, "the connection into the job ended early", {}, {}});
}

}  // namespace gpu_platform::cli
