#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "kubernetes/testing/api_request.h"
#include "kubernetes/testing/streams.h"

// HTTP/1.1 over plain TCP on 127.0.0.1. Thread: that of the io_context.

namespace gpu_platform::kubernetes {

struct HttpReply {
  enum class Kind : std::uint8_t {
    kAnswer,
    kStream,
    kHang,   // no answer, for ever
    kClose,  // the connection ends without an answer
  };
  Kind kind = Kind::kAnswer;
  ApiAnswer answer = {};
  std::shared_ptr<Stream> stream = nullptr;
};

class HttpFront {
 public:
  using Handler = std::function<HttpReply(const ApiRequest&)>;
  // `mutex` is held while a stream is used, not while `handler` is called. Both outlive this.
  HttpFront(boost::asio::io_context& io, std::mutex& mutex, Handler handler);
  ~HttpFront();
  HttpFront(const HttpFront&) = delete;
  HttpFront& operator=(const HttpFront&) = delete;

  // Listens at a port, 0 for a free one, and returns it; 0 if that failed.
  std::uint16_t listen(std::uint16_t port);
  void stop_listening();
  // Ends all connections at once.
  void drop_connections();
  // Sends what is new in the streams.
  void pump();
  // Requests for a WebSocket go on to this port of 127.0.0.1, with all that follows on their
  // connection; 0: they are answered as others.
  void pass_web_sockets_to(std::uint16_t port) { web_socket_port_ = port; }

 private:
  class Session;
  void accept();

  boost::asio::io_context& io_;
  std::mutex& mutex_;
  Handler handler_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::set<std::shared_ptr<Session>> sessions_;
  std::uint16_t web_socket_port_ = 0;
};

}  // namespace gpu_platform::kubernetes
