#include "kubernetes/server_stream.h"

#include <openssl/ssl.h>

#include <string>
#include <type_traits>

#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <boost/beast/websocket/teardown.hpp>

namespace gpu_platform::kubernetes {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace ssl = asio::ssl;
using asio::ip::tcp;
using Error = Transport::Error;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

template <class Stream>
class TransportOver : public Transport {
 public:
  template <class... Arguments>
  explicit TransportOver(std::unique_ptr<ssl::context> tls, Arguments&&... arguments)
      : tls_(std::move(tls)), stream_(std::forward<Arguments>(arguments)...) {}

  asio::any_io_executor executor() override { return stream_.get_executor(); }

  void connect(const tcp::resolver::results_type& found, Ended done) override {
    lowest().async_connect(
        found, [this, done = std::move(done)](const Error& error, const tcp::endpoint&) mutable {
          Error ignored;
          if (!error) lowest().socket().set_option(tcp::no_delay(true), ignored);
          done(error);
        });
  }

  void secure(Ended done) override {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      stream_.async_handshake(ssl::stream_base::client, std::move(done));
    } else {
      asio::post(stream_.get_executor(), [done = std::move(done)]() mutable { done({}); });
    }
  }

  void read_some(const std::vector<asio::mutable_buffer>& buffers, Moved done) override {
    stream_.async_read_some(buffers, std::move(done));
  }
  void write_some(const std::vector<asio::const_buffer>& buffers, Moved done) override {
    stream_.async_write_some(buffers, std::move(done));
  }
  void finish(beast::role_type role, Ended done) override {
    using beast::websocket::async_teardown;
    async_teardown(role, stream_, std::move(done));
  }
  void drop() override { lowest().close(); }

 private:
  beast::tcp_stream& lowest() { return beast::get_lowest_layer(stream_); }

  const std::unique_ptr<ssl::context> tls_;  // null: plain TCP
  Stream stream_;
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

base::Result<std::unique_ptr<Transport>> make_over_tls(asio::io_context& io,
                                                       const Endpoint& endpoint,
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
  return std::make_unique<TransportOver<TlsStream>>(std::move(context), std::move(stream));
}

}  // namespace

base::Result<std::unique_ptr<Transport>> Transport::make(asio::io_context& io,
                                                         const Endpoint& endpoint,
                                                         const Credential& credential) {
  if (!endpoint.is_tls) return std::make_unique<TransportOver<beast::tcp_stream>>(nullptr, io);
  try {
    return make_over_tls(io, endpoint, credential);
  } catch (const boost::system::system_error& error) {
    return base::fail(base::ErrorCode::kInternal,
                      std::string("TLS cannot be used: ") + error.what());
  }
}

}  // namespace gpu_platform::kubernetes
