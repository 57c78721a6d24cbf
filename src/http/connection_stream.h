#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/role.hpp>

#include "http/connection.h"

namespace gpu_platform::http {

// A Connection as Boost's libraries want a stream, so that a WebSocket needs no second way to a
// daemon. One read and one write may be under way. One thread, the io context's.
class ConnectionStream {
 public:
  using executor_type = boost::asio::any_io_executor;

  ConnectionStream(boost::asio::io_context& io, Connection connection);
  ConnectionStream(ConnectionStream&&) = delete;
  ~ConnectionStream() { close(); }

  executor_type get_executor() { return readiness_.get_executor(); }
  // What is under way ends with an error.
  void close();

  // These wait; for an answer at most a minute.
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers, boost::system::error_code& error) {
    const boost::asio::mutable_buffer room = first_of<boost::asio::mutable_buffer>(buffers);
    return read({static_cast<char*>(room.data()), room.size()}, error);
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers, boost::system::error_code& error) {
    const boost::asio::const_buffer bytes = first_of<boost::asio::const_buffer>(buffers);
    return write({static_cast<const char*>(bytes.data()), bytes.size()}, error);
  }
  // Beast asks for these two and does not call them.
  template <class Buffers>
  std::size_t read_some(const Buffers& buffers) {
    boost::system::error_code error;
    const std::size_t got = read_some(buffers, error);
    return error ? throw boost::system::system_error(error) : got;
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& buffers) {
    boost::system::error_code error;
    const std::size_t sent = write_some(buffers, error);
    return error ? throw boost::system::system_error(error) : sent;
  }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    begin_read(first_of<boost::asio::mutable_buffer>(buffers), std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    begin_write(first_of<boost::asio::const_buffer>(buffers), std::forward<Handler>(handler));
  }

 private:
  // The first buffer that is not empty.
  template <class Buffer, class Buffers>
  static Buffer first_of(const Buffers& buffers) {
    const auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto at = boost::asio::buffer_sequence_begin(buffers); at != end; ++at) {
      if (Buffer(*at).size() > 0) return Buffer(*at);
    }
    return {};
  }

  // A WebSocket's own handlers have types that are long to compile: here they have one.
  using Moved = std::move_only_function<void(boost::system::error_code, std::size_t)>;
  void begin_read(boost::asio::mutable_buffer room, Moved done);
  void begin_write(boost::asio::const_buffer bytes, Moved done);
  template <class Try>
  void step_by_step(Try attempt, bool ends, Moved done);

  std::size_t read(std::span<char> room, boost::system::error_code& error);
  std::size_t write(std::string_view bytes, boost::system::error_code& error);

  Connection connection_;
  boost::asio::posix::stream_descriptor readiness_;  // the connection's own descriptor
};

// Beast ends a WebSocket's stream with these.
inline void teardown(boost::beast::role_type, ConnectionStream& stream,
                     boost::system::error_code& error) {
  stream.close();
  error = {};
}
template <class Handler>
void async_teardown(boost::beast::role_type, ConnectionStream& stream, Handler&& handler) {
  stream.close();
  boost::asio::post(stream.get_executor(),
                    boost::beast::bind_front_handler(std::forward<Handler>(handler),
                                                     boost::system::error_code()));
}
inline void beast_close_socket(ConnectionStream& stream) {
  stream.close();
}

}  // namespace gpu_platform::http
