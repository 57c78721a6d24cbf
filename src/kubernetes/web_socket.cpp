#include "kubernetes/web_socket.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>

#include "kubernetes/server_stream.h"
#include "os/clock.h"

namespace gpu_platform::kubernetes {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using asio::ip::tcp;
using Error = WebSocket::Error;

// The server has this time to answer a close.
constexpr std::chrono::seconds kCloseTime{5};

Answer no_answer(std::string_view what, const Error& error) {
  return {.failure = fmt::format("{}: {}", what, error.message())};
}

class ServerWebSocket : public WebSocket {
 public:
  ServerWebSocket(asio::io_context& io, Endpoint endpoint, std::string token,
                  std::unique_ptr<Transport> transport)
      : endpoint_(std::move(endpoint)),
        token_(std::move(token)),
        resolver_(io),
        socket_(std::move(transport)) {}

  void open(std::string path, std::string protocol, Opened done) override {
    path_ = endpoint_.path + std::move(path);
    protocol_ = std::move(protocol);
    resolver_.async_resolve(endpoint_.host, endpoint_.port,
                            [this, done = std::move(done)](
                                const Error& error, const tcp::resolver::results_type& found) {
                              if (error) return done(no_answer("look up " + endpoint_.host, error));
                              connect(found, done);
                            });
  }

  void read(std::function<void(const Error&, std::string_view)> done) override {
    in_.clear();
    socket_.async_read(in_, [this, done = std::move(done)](const Error& error, std::size_t) {
      if (!error) heard_ns_ = os::monotonic_ns();
      const auto bytes = in_.cdata();
      done(error, {static_cast<const char*>(bytes.data()), bytes.size()});
    });
  }

  void write(std::string message, std::function<void(const Error&)> done) override {
    out_ = std::move(message);
    socket_.async_write(asio::buffer(out_),
                        [done = std::move(done)](const Error& error, std::size_t) { done(error); });
  }

  void ping(std::function<void(const Error&)> done) override {
    socket_.async_ping({}, std::move(done));
  }

  std::int64_t heard_ns() const override { return heard_ns_; }

  void close(std::function<void(const Error&)> done) override {
    socket_.async_close(websocket::close_code::normal, std::move(done));
  }

  void drop() override {
    resolver_.cancel();
    transport().drop();
  }

 private:
  Transport& transport() { return socket_.next_layer().transport(); }

  void connect(const tcp::resolver::results_type& found, const Opened& done) {
    transport().connect(found, [this, done](const Error& error) {
      if (error) return done(no_answer("connect to " + endpoint_.authority, error));
      secure(done);
    });
  }

  void secure(const Opened& done) {
    transport().secure([this, done](const Error& error) {
      if (error) return done(no_answer("TLS with " + endpoint_.authority, error));
      upgrade(done);
    });
  }

  void upgrade(const Opened& done) {
    socket_.set_option(websocket::stream_base::decorator([this](websocket::request_type& request) {
      request.set(http::field::user_agent, "gpu-platform");
      request.set(http::field::sec_websocket_protocol, protocol_);
      if (!token_.empty()) request.set(http::field::authorization, "Bearer " + token_);
    }));
    socket_.binary(true);
    // An API server reads each frame as a message of its own.
    socket_.auto_fragment(false);
    socket_.read_message_max(kMaxMessage);
    socket_.control_callback(
        [this](websocket::frame_type, beast::string_view) { heard_ns_ = os::monotonic_ns(); });
    socket_.async_handshake(answer_, endpoint_.authority, path_, [this, done](const Error& error) {
      done(error ? refusal(error) : upgrade_error());
    });
  }

  Answer refusal(const Error& error) const {
    if (error != websocket::error::upgrade_declined) {
      return no_answer("ask " + endpoint_.authority, error);
    }
    return {.status = static_cast<int>(answer_.result_int()), .body = answer_.body()};
  }

  // The server has agreed, maybe to something else.
  std::optional<Answer> upgrade_error() {
    heard_ns_ = os::monotonic_ns();
    socket_.set_option(
        websocket::stream_base::timeout{kCloseTime, websocket::stream_base::none(), false});
    if (answer_[http::field::sec_websocket_protocol] == protocol_) return std::nullopt;
    return Answer{.failure = fmt::format("{} does not support {}", endpoint_.authority, protocol_)};
  }

  const Endpoint endpoint_;
  const std::string token_;
  std::string path_;
  std::string protocol_;
  tcp::resolver resolver_;
  websocket::stream<ServerStream, false> socket_;  // false: without compression
  websocket::response_type answer_;
  beast::flat_buffer in_;
  std::string out_;
  std::int64_t heard_ns_ = 0;
};

}  // namespace

base::Result<std::unique_ptr<WebSocket>> WebSocket::make(asio::io_context& io, Endpoint endpoint,
                                                         Credential credential) {
  TRY_ASSIGN(std::unique_ptr<Transport> transport, Transport::make(io, endpoint, credential));
  return std::make_unique<ServerWebSocket>(io, std::move(endpoint), std::move(credential.token),
                                           std::move(transport));
}

}  // namespace gpu_platform::kubernetes
