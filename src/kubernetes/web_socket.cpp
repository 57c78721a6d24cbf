#include "kubernetes/web_socket.h"

#include <openssl/ssl.h>

#include <chrono>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>

#include "os/clock.h"

namespace gpu_platform::kubernetes {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
namespace ssl = asio::ssl;
using asio::ip::tcp;
using Error = WebSocket::Error;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

// The server has this time to answer a close.
constexpr std::chrono::seconds kCloseTime{5};

Answer no_answer(std::string_view what, const Error& error) {
  return {.failure = fmt::format("{}: {}", what, error.message())};
}

template <class Next>
class WebSocketOver : public WebSocket {
 public:
  template <class... Arguments>
  WebSocketOver(asio::io_context& io, Endpoint endpoint, std::string token,
                std::unique_ptr<ssl::context> tls, Arguments&&... arguments)
      : endpoint_(std::move(endpoint)),
        token_(std::move(token)),
        tls_(std::move(tls)),
        resolver_(io),
        socket_(std::forward<Arguments>(arguments)...) {}

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
    beast::get_lowest_layer(socket_).close();
  }

 private:
  void connect(const tcp::resolver::results_type& found, const Opened& done) {
    beast::get_lowest_layer(socket_).async_connect(
        found, [this, done](const Error& error, const tcp::endpoint&) {
          if (error) return done(no_answer("connect to " + endpoint_.authority, error));
          Error ignored;
          beast::get_lowest_layer(socket_).socket().set_option(tcp::no_delay(true), ignored);
          secure(done);
        });
  }

  void secure(const Opened& done) {
    if constexpr (std::is_same_v<Next, TlsStream>) {
      socket_.next_layer().async_handshake(
          ssl::stream_base::client, [this, done](const Error& error) {
            if (error) return done(no_answer("TLS with " + endpoint_.authority, error));
            upgrade(done);
          });
    } else {
      upgrade(done);
    }
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
      done(error ? refusal(error) : objection());
    });
  }

  Answer refusal(const Error& error) const {
    if (error != websocket::error::upgrade_declined) {
      return no_answer("ask " + endpoint_.authority, error);
    }
    return {.status = static_cast<int>(answer_.result_int()), .body = answer_.body()};
  }

  // The server has agreed, maybe to something else.
  std::optional<Answer> objection() {
    heard_ns_ = os::monotonic_ns();
    socket_.set_option(
        websocket::stream_base::timeout{kCloseTime, websocket::stream_base::none(), false});
    if (answer_[http::field::sec_websocket_protocol] == protocol_) return std::nullopt;
    return Answer{.failure = fmt::format("{} does not speak {}", endpoint_.authority, protocol_)};
  }

  const Endpoint endpoint_;
  const std::string token_;
  const std::unique_ptr<ssl::context> tls_;  // null: plain TCP
  std::string path_;
  std::string protocol_;
  tcp::resolver resolver_;
  websocket::stream<Next> socket_;
  websocket::response_type answer_;
  beast::flat_buffer in_;
  std::string out_;
  std::int64_t heard_ns_ = 0;
};

base::Status use_credential(ssl::context& context, const Credential& credential) {
  if (credential.certificate_pem.empty()) return {};
  Error error;
  context.use_certificate_chain(asio::buffer(credential.certificate_pem), error);
  if (!error) context.use_private_key(asio::buffer(credential.key_pem), ssl::context::pem, error);
  if (!error) return {};
  return base::fail(base::ErrorCode::kFailedPrecondition,
                    "the user's certificate or its key cannot be used: " + error.message());
}

base::Status trust(ssl::context& context, const Endpoint& endpoint) {
  Error error;
  if (endpoint.skips_verification) {
    context.set_verify_mode(ssl::verify_none, error);
    return {};
  }
  // As libcurl does it for all other requests: an authority need not have signed itself.
  SSL_CTX* native = context.native_handle();
  X509_STORE_set_flags(SSL_CTX_get_cert_store(native), X509_V_FLAG_PARTIAL_CHAIN);
  if (endpoint.ca_pem.empty()) {
    context.set_default_verify_paths(error);
  } else {
    context.add_certificate_authority(asio::buffer(endpoint.ca_pem), error);
  }
  if (!error) context.set_verify_mode(ssl::verify_peer, error);
  if (!error) {
    context.set_verify_callback(ssl::host_name_verification(endpoint.checked_name), error);
  }
  if (!error) return {};
  return base::fail(base::ErrorCode::kFailedPrecondition,
                    "the cluster's authorities cannot be used: " + error.message());
}

base::Result<std::unique_ptr<WebSocket>> make_over_tls(asio::io_context& io, Endpoint endpoint,
                                                       const Credential& credential) {
  auto context = std::make_unique<ssl::context>(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  TRY(trust(*context, endpoint));
  TRY(use_credential(*context, credential));
  TlsStream stream(io, *context);
  SSL* session = stream.native_handle();
  static constexpr unsigned char kProtocols[] = "\x08http/1.1";
  SSL_set_alpn_protos(session, kProtocols, sizeof kProtocols - 1);
  Error error;
  static_cast<void>(asio::ip::make_address(endpoint.checked_name, error));
  const bool is_name = static_cast<bool>(error);
  if (is_name) SSL_set_tlsext_host_name(session, endpoint.checked_name.c_str());
  return std::make_unique<WebSocketOver<TlsStream>>(io, std::move(endpoint), credential.token,
                                                    std::move(context), std::move(stream));
}

}  // namespace

base::Result<std::unique_ptr<WebSocket>> WebSocket::make(asio::io_context& io, Endpoint endpoint,
                                                         Credential credential) {
  if (!endpoint.is_tls) {
    return std::make_unique<WebSocketOver<beast::tcp_stream>>(
        io, std::move(endpoint), std::move(credential.token), nullptr, io);
  }
  try {
    return make_over_tls(io, std::move(endpoint), credential);
  } catch (const boost::system::system_error& error) {
    return base::fail(base::ErrorCode::kInternal,
                      std::string("TLS cannot be used: ") + error.what());
  }
}

}  // namespace gpu_platform::kubernetes
