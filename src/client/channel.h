#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "client/client.h"
#include "http/connection_stream.h"
#include "model/channel.h"

namespace gpu_platform::client {

// A channel into a job (model/channel.h), over a WebSocket to the daemon. One thread, the io
// context's; lives as long as anything of it is under way.
class Channel : public std::enable_shared_from_this<Channel> {
 public:
  struct Events {
    std::function<void(const model::Frame&)> frame;  // those for clients
    std::function<void()> closed;                    // once; nothing comes afterwards
  };

  // Asks the daemon for it and waits for the answer.
  static Called<std::shared_ptr<Channel>> open(boost::asio::io_context& io, Client& client,
                                               const std::string& target);

  void begin(Events events);
  // Frames go in their order; the window of input is the caller's business.
  void send(const model::Frame& frame);
  // Between the two at most one more frame comes: the rest waits where it comes from.
  void pause() { is_paused_ = true; }
  void resume();
  void close();

 private:
  Channel(boost::asio::io_context& io, http::Connection connection)
      : stream_(io, std::move(connection)) {}
  void read();
  void take();
  void write();
  void end();

  boost::beast::websocket::stream<http::ConnectionStream, false> stream_;  // without compression
  boost::beast::flat_buffer incoming_;
  std::deque<std::string> outgoing_;
  Events events_;
  bool is_reading_ = false;
  bool is_paused_ = false;
  bool is_over_ = false;
};

// How much input may be sent before the other side has taken some.
class InputWindow {
 public:
  std::size_t most() const { return std::min(left_, model::kMaxFrameBytes); }
  void sent(std::size_t bytes) { left_ -= bytes; }
  void taken(std::size_t bytes) { left_ = std::min(left_ + bytes, model::kInputWindow); }

 private:
  std::size_t left_ = model::kInputWindow;
};

}  // namespace gpu_platform::client
