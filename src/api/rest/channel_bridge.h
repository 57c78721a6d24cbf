#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>

#include <boost/asio/generic/seq_packet_protocol.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "api/channel_source.h"
#include "api/rest/session.h"

namespace gpu_platform::api {

// Carries frames between a WebSocket and a channel without reading them, one at a time in each
// direction: a side that takes nothing keeps the other side waiting, and nothing is stored here.
//
// Thread: the socket's io context's one thread. Keeps itself alive while something is under way.
class ChannelBridge : public std::enable_shared_from_this<ChannelBridge> {
 public:
  using Request = boost::beast::http::request<boost::beast::http::string_body>;

  // `ended` is called once, when both sides are closed.
  ChannelBridge(LocalSocket socket, ChannelSocket channel, std::function<void()> ended);

  void begin(const Request& request);
  // Ends at once.
  void close();
  // Tells the client why and ends when it has answered, or after a few seconds.
  void leave(boost::beast::websocket::close_reason reason);

 private:
  using Error = boost::system::error_code;
  using SeqPacketSocket =
      boost::asio::basic_seq_packet_socket<boost::asio::generic::seq_packet_protocol,
                                           boost::asio::io_context::executor_type>;

  void read_client();
  void write_job(std::size_t bytes);
  void read_job();
  void write_client(std::size_t bytes);
  void end_websocket(boost::beast::websocket::close_reason reason);

  boost::beast::websocket::stream<LocalSocket, false> client_;  // false: without compression
  SeqPacketSocket job_;
  std::shared_ptr<const void> witness_;  // of the channel, until it is closed
  std::function<void()> ended_;
  boost::beast::flat_buffer from_client_;
  std::array<char, model::kMaxFrame + 1> from_job_;
  boost::asio::socket_base::message_flags flags_ = 0;  // of the last packet; nothing is read there
  bool is_open_ = false;                               // the handshake is over
  std::optional<boost::beast::websocket::close_reason> leaving_;  // why, until that can be told
  bool is_closing_ = false;
  bool was_reset_ = false;
};

}  // namespace gpu_platform::api
