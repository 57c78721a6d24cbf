#include "kubernetes/testing/http_front.h"

#include <array>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

namespace gpu_platform::kubernetes {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::uint64_t kMaxBody = 64u << 20;

std::string chunk(const std::string& text) {
  return text.empty() ? std::string() : fmt::format("{:x}\r\n{}\r\n", text.size(), text);
}

}  // namespace

// A connection: one request after the other.
class HttpFront::Session : public std::enable_shared_from_this<HttpFront::Session> {
 public:
  Session(HttpFront& front, tcp::socket socket)
      : front_(front), socket_(std::move(socket)), other_(front.io_), timer_(front.io_) {}

  void begin() {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    read();
  }

  void close() {
    if (is_closed_) return;
    is_closed_ = true;
    error_code ignored;
    socket_.close(ignored);
    other_.close(ignored);
    timer_.cancel();
    drop_stream();
    front_.sessions_.erase(shared_from_this());
  }

  void pump() {
    if (!stream_ || is_writing_ || is_closed_) return;
    std::string text;
    bool goes_on = false;
    {
      const std::lock_guard lock(front_.mutex_);
      goes_on = stream_->fill(text);
    }
    out_ += chunk(text);
    if (!goes_on) {
      out_ += "0\r\n\r\n";
      drop_stream();
    }
    if (!out_.empty()) write_out();
  }

 private:
  void drop_stream() {
    const std::lock_guard lock(front_.mutex_);
    stream_.reset();
  }

  void read() {
    parser_.emplace();
    parser_->body_limit(kMaxBody);
    http::async_read(socket_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, std::size_t) {
                       if (error) return self->close();
                       self->answer();
                     });
  }

  void answer() {
    const auto& message = parser_->get();
    const auto target = message.target();
    ApiRequest request = make_api_request(std::string(message.method_string()),
                                          std::string_view(target.data(), target.size()));
    request.content_type = std::string(message[http::field::content_type]);
    request.body = message.body();
    HttpReply reply = front_.handler_(request);
    const bool is_refused = reply.kind != HttpReply::Kind::kAnswer || reply.answer.status == 403;
    if (!is_refused && front_.web_socket_port_ != 0 &&
        boost::beast::websocket::is_upgrade(message)) {
      return pass_on();
    }
    switch (reply.kind) {
      case HttpReply::Kind::kAnswer:
        return send(reply.answer);
      case HttpReply::Kind::kStream:
        return begin_stream(std::move(reply.stream));
      case HttpReply::Kind::kHang:
        return watch_peer();
      case HttpReply::Kind::kClose:
        return close();
    }
  }

  void send(const ApiAnswer& answer) {
    response_ = {};
    response_.version(11);
    response_.result(static_cast<unsigned>(answer.status));
    response_.set(http::field::content_type, answer.content_type);
    for (const auto& [name, value] : answer.headers) response_.set(name, value);
    response_.keep_alive(parser_->get().keep_alive());
    response_.body() = answer.body;
    response_.prepare_payload();
    http::async_write(socket_, response_,
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (error || !self->response_.keep_alive()) return self->close();
                        self->read();
                      });
  }

  void begin_stream(std::shared_ptr<Stream> stream) {
    stream_ = std::move(stream);
    out_ = fmt::format(
        "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nCache-Control: no-cache, private\r\n"
        "Transfer-Encoding: chunked\r\n\r\n",
        stream_->content_type());
    if (stream_->limit_s() > 0) begin_timer(std::chrono::seconds(stream_->limit_s()));
    watch_peer();
    write_out();
  }

  void begin_timer(std::chrono::seconds limit) {
    timer_.expires_after(limit);
    timer_.async_wait(
        [self = shared_from_this(), stream = std::weak_ptr(stream_)](error_code error) {
          const auto current = stream.lock();
          if (error || !current || current != self->stream_) return;
          {
            const std::lock_guard lock(self->front_.mutex_);
            current->time_out();
          }
          self->pump();
        });
  }

  void write_out() {
    is_writing_ = true;
    written_ = std::exchange(out_, {});
    asio::async_write(socket_, asio::buffer(written_),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        self->is_writing_ = false;
                        if (error) return self->close();
                        if (self->stream_) return self->pump();
                        self->timer_.cancel();
                        self->read();
                      });
  }

  void pass_on() {
    error_code error;
    other_.connect({asio::ip::address_v4::loopback(), front_.web_socket_port_}, error);
    if (!error) http::write(other_, parser_->get(), error);
    if (error) return close();
    carry(socket_, other_, there_);
    carry(other_, socket_, back_);
  }

  // Bytes of one side go to the other one.
  void carry(tcp::socket& from, tcp::socket& to, std::array<char, 4096>& bytes) {
    from.async_read_some(asio::buffer(bytes), [this, self = shared_from_this(), &from, &to, &bytes](
                                                  error_code error, std::size_t size) {
      if (error) return close();
      asio::async_write(to, asio::buffer(bytes, size),
                        [this, self, &from, &to, &bytes](error_code failed, std::size_t) {
                          if (failed) return close();
                          carry(from, to, bytes);
                        });
    });
  }

  // Closes when the client leaves while no request is read.
  void watch_peer() {
    if (is_peer_watched_) return;
    is_peer_watched_ = true;
    socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code error) {
      self->is_peer_watched_ = false;
      if (error || self->is_closed_) return;
      std::array<char, 1> byte{};
      error_code result;
      self->socket_.non_blocking(true, result);
      const std::size_t got =
          self->socket_.receive(asio::buffer(byte), tcp::socket::message_peek, result);
      if (got == 0 && result != asio::error::would_block) self->close();
    });
  }

  HttpFront& front_;
  tcp::socket socket_;
  tcp::socket other_;  // that a WebSocket is passed on to
  std::array<char, 4096> there_;
  std::array<char, 4096> back_;
  asio::steady_timer timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  std::shared_ptr<Stream> stream_;  // null: none is under way
  std::string out_;
  std::string written_;  // being written
  bool is_writing_ = false;
  bool is_closed_ = false;
  bool is_peer_watched_ = false;
};

HttpFront::HttpFront(asio::io_context& io, std::mutex& mutex, Handler handler)
    : io_(io), mutex_(mutex), handler_(std::move(handler)), acceptor_(io) {}

HttpFront::~HttpFront() {
  stop_listening();
  drop_connections();
}

std::uint16_t HttpFront::listen(std::uint16_t port) {
  error_code error;
  const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  const std::uint16_t bound = error ? 0 : acceptor_.local_endpoint(error).port();
  if (error) {
    stop_listening();
    return 0;
  }
  accept();
  return bound;
}

void HttpFront::stop_listening() {
  error_code ignored;
  acceptor_.close(ignored);
}

void HttpFront::drop_connections() {
  const std::vector<std::shared_ptr<Session>> sessions(sessions_.begin(), sessions_.end());
  for (const auto& session : sessions) session->close();
}

void HttpFront::pump() {
  const std::vector<std::shared_ptr<Session>> sessions(sessions_.begin(), sessions_.end());
  for (const auto& session : sessions) session->pump();
}

void HttpFront::accept() {
  acceptor_.async_accept([this](error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted || !acceptor_.is_open()) return;
    if (!error) {
      const auto session = std::make_shared<Session>(*this, std::move(socket));
      sessions_.insert(session);
      session->begin();
    }
    accept();
  });
}

}  // namespace gpu_platform::kubernetes
