#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/system/error_code.hpp>

#include "base/result.h"
#include "kubernetes/client.h"
#include "kubernetes/endpoint.h"

namespace gpu_platform::kubernetes {

// A TCP connection to an API server, with TLS or without. Its handlers have one type each: a
// WebSocket's own reach deep into Boost's templates, and would be compiled anew for each kind of
// connection, for half a minute.
//
// Thread: that of the io_context. Handlers come from there, never from within the call; at most one
// read and one write is under way, and what they move must live until then.
class Transport {
 public:
  using Error = boost::system::error_code;
  using Ended = std::move_only_function<void(const Error&)>;
  using Moved = std::move_only_function<void(const Error&, std::size_t bytes)>;

  // Errors: the credential's certificate or the authorities cannot be used.
  static base::Result<std::unique_ptr<Transport>> make(boost::asio::io_context& io,
                                                       const Endpoint& endpoint,
                                                       const Credential& credential);
  virtual ~Transport() = default;

  virtual boost::asio::any_io_executor executor() = 0;
  virtual void connect(const boost::asio::ip::tcp::resolver::results_type& found, Ended done) = 0;
  // The handshake of TLS, and nothing without TLS.
  virtual void secure(Ended done) = 0;
  virtual void read_some(const std::vector<boost::asio::mutable_buffer>& buffers, Moved done) = 0;
  virtual void write_some(const std::vector<boost::asio::const_buffer>& buffers, Moved done) = 0;
  // Says that nothing more comes, and waits until the server has said so.
  virtual void finish(boost::beast::role_type role, Ended done) = 0;
  // What is under way ends with an error.
  virtual void drop() = 0;
};

// A transport as Boost's libraries want a stream.
class ServerStream {
 public:
  using executor_type = boost::asio::any_io_executor;

  explicit ServerStream(std::unique_ptr<Transport> transport) : transport_(std::move(transport)) {}

  executor_type get_executor() { return transport_->executor(); }
  Transport& transport() { return *transport_; }

  template <class Buffers, class Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    transport_->read_some(listed<boost::asio::mutable_buffer>(buffers),
                          std::forward<Handler>(handler));
  }
  template <class Buffers, class Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    transport_->write_some(listed<boost::asio::const_buffer>(buffers),
                           std::forward<Handler>(handler));
  }

 private:
  template <class Buffer, class Buffers>
  static std::vector<Buffer> listed(const Buffers& buffers) {
    return {boost::asio::buffer_sequence_begin(buffers), boost::asio::buffer_sequence_end(buffers)};
  }

  std::unique_ptr<Transport> transport_;
};

// Beast ends a WebSocket's stream with these.
template <class Handler>
void async_teardown(boost::beast::role_type role, ServerStream& stream, Handler&& handler) {
  stream.transport().finish(role, std::forward<Handler>(handler));
}
inline void beast_close_socket(ServerStream& stream) {
  stream.transport().drop();
}

}  // namespace gpu_platform::kubernetes
