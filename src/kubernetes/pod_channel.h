#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/generic/seq_packet_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "kubernetes/pod_messages.h"
#include "kubernetes/pod_streams.h"
#include "kubernetes/web_socket.h"
#include "model/channel.h"

namespace gpu_platform::kubernetes {

// One channel of PodStreams. Lives as long as something of it is under way. Thread: that of the
// io_context.
class PodChannel : public std::enable_shared_from_this<PodChannel> {
 public:
  PodChannel(boost::asio::io_context& io, PodStream stream, PodStreamLimits limits,
             os::Descriptor channel);

  // Opens the connection to the server.
  void begin(std::unique_ptr<WebSocket> socket);
  // Says that there will be none, and why.
  void refuse(std::string_view why);

 private:
  using Error = boost::system::error_code;

  void opened(const std::optional<Answer>& refusal);
  // ---- time
  void wake_after(base::Duration time);
  void on_timer();
  void keep_alive();
  // ---- from the person
  void read_frames();
  bool take_frame(const model::Frame& frame);
  bool take_input(std::string_view bytes);
  void take_signal(int signal);
  struct ToPod {
    std::string message;
    std::size_t input_bytes = 0;  // of the person's input that are in it
  };
  std::optional<ToPod> next_message();
  void write_server();
  // ---- from the pod
  void read_server();
  void take_message(std::string_view message);
  void add_output(const PodMessage& message);
  void server_left();
  // ---- to the person
  void add_frame(const model::Frame& frame) { frames_.push_back(model::encode_frame(frame)); }
  void pump();
  // ---- the end
  void end(const StreamEnd& how);
  void cut();
  void leave();

  const PodStream stream_;
  const PodStreamLimits limits_;
  boost::asio::generic::seq_packet_protocol::socket channel_;
  std::unique_ptr<WebSocket> socket_;  // null: refused before
  boost::asio::steady_timer timer_;
  PodMessages messages_;
  std::array<char, model::kMaxFrame> frame_;  // that is being received
  boost::asio::socket_base::message_flags flags_ = 0;

  std::string waiting_;                      // input, not sent yet
  std::size_t under_way_ = 0;                // bytes of input that are being sent
  std::string keys_;                         // of signals
  std::optional<model::TerminalSize> size_;  // to be told
  bool input_has_ended_ = false;
  bool is_end_of_input_told_ = false;
  std::uint32_t taken_ = 0;            // bytes of input, to be told
  std::deque<std::string> frames_;     // to the person
  std::optional<StreamEnd> told_end_;  // by the server, which may have more output

  bool is_open_ = false;
  bool is_reading_ = false;  // the server
  bool is_writing_ = false;  // to the server
  bool is_pinging_ = false;
  bool is_sending_ = false;  // to the person
  bool was_reset_ = false;
  bool is_ending_ = false;  // `frames_` are the last ones
  bool has_left_ = false;
  std::int64_t reads_since_ns_ = 0;
  std::int64_t wrote_input_ns_ = 0;
};

}  // namespace gpu_platform::kubernetes
