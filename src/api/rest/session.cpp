#include "api/rest/session.h"

#include <utility>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>

#include "api/convert/problem.h"
#include "api/rest/channel_bridge.h"

namespace gpu_platform::api {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

// Bytes that may wait unparsed while a request is being answered, and be read and dropped after an
// answer that ends the connection.
constexpr std::size_t kMostPending = 64 * 1024;
constexpr std::uint64_t kMostDrained = 16 << 20;
constexpr std::size_t kMostKept = 256 * 1024;
constexpr std::chrono::milliseconds kDrainTime{2'000};

std::string header(const auto& message, http::field name) {
  const auto found = message.find(name);
  return found == message.end() ? std::string() : std::string(found->value());
}

std::string header(const auto& message, std::string_view name) {
  const auto found = message.find(boost::beast::string_view(name.data(), name.size()));
  return found == message.end() ? std::string() : std::string(found->value());
}

}  // namespace

Session::Session(LocalSocket socket, Peer peer, Environment environment)
    : socket_(std::move(socket)),
      peer_(std::move(peer)),
      environment_(std::move(environment)),
      is_woken_(std::make_shared<std::atomic<bool>>(false)),
      timer_(environment_.io) {}

void Gate::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (is_open_) asio::post(io_, std::move(work));
}

void Gate::close() {
  const std::lock_guard lock(mutex_);
  is_open_ = false;
}

void Session::start() {
  if (state_ != State::kClosed) begin_request();
}

// ---- reading ----

void Session::begin_request() {
  state_ = State::kReading;
  parser_.emplace();
  parser_->body_limit(environment_.limits.body_bytes);
  parser_->header_limit(environment_.limits.header_bytes);
  has_continued_ = false;
  if (consumed_ < buffer_.size()) {
    set_deadline(environment_.limits.request_time);
    parse();
  } else {
    set_deadline(environment_.limits.idle_time);
    read();
  }
}

void Session::read() {
  if (is_reading_) return;
  is_reading_ = true;
  socket_.async_read_some(asio::buffer(chunk_),
                          [session = self()](const error_code& error, std::size_t bytes) {
                            session->on_read(error, bytes);
                          });
}

void Session::on_read(const error_code& error, std::size_t bytes) {
  is_reading_ = false;
  if (state_ == State::kClosed) return;
  if (error == asio::error::eof && state_ != State::kReading && state_ != State::kDraining) {
    return on_client_finished();
  }
  if (error) return close();
  if (state_ == State::kDraining) {
    drained_ += bytes;
    return drained_ > kMostDrained ? close() : read();
  }
  const bool is_first = state_ == State::kReading && buffer_.empty();
  buffer_.append(chunk_.data(), bytes);
  if (state_ == State::kReading) {
    if (is_first && !parser_->got_some()) set_deadline(environment_.limits.request_time);
    return parse();
  }
  // Only to notice a client that goes: its next request waits.
  if (buffer_.size() < kMostPending) read();
}

// The client sends no more. One that only closed its sending side still reads the answer.
void Session::on_client_finished() {
  keeps_alive_ = false;
  socket_.async_wait(asio::socket_base::wait_error, [session = self()](const error_code& error) {
    if (!error) session->close();
  });
}

void Session::parse() {
  error_code error;
  while (consumed_ < buffer_.size() && !parser_->is_done()) {
    consumed_ += parser_->put(
        asio::const_buffer(buffer_.data() + consumed_, buffer_.size() - consumed_), error);
    if (error) break;
  }
  if (consumed_ == buffer_.size()) {
    buffer_.clear();
    consumed_ = 0;
  } else if (consumed_ > kMostPending) {
    buffer_.erase(0, consumed_);
    consumed_ = 0;
  }
  if (error == http::error::need_more) error = {};
  if (error) return refuse_malformed(error);
  if (parser_->is_done()) return dispatch();
  continue_if_expected();
  read();
}

// A client that asks before it sends a large body. What is too large was refused with the header.
void Session::continue_if_expected() {
  if (has_continued_ || !parser_->is_header_done()) return;
  has_continued_ = true;
  if (header(parser_->get(), http::field::expect) != "100-continue") return;
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  // These few bytes fit into the empty socket buffer of a client that waits for them.
  error_code ignored;
  socket_.write_some(asio::buffer(kContinue), ignored);
}

void Session::refuse_malformed(const error_code& error) {
  int status = 400;
  std::string detail = fmt::format("the request is not valid HTTP: {}", error.message());
  auto code = base::ErrorCode::kInvalidArgument;
  if (error == http::error::body_limit) {
    status = 413;
    detail = fmt::format("the body is larger than {} bytes", environment_.limits.body_bytes);
  } else if (error == http::error::header_limit) {
    status = 431;
    detail = fmt::format("the header is larger than {} bytes", environment_.limits.header_bytes);
  }
  state_ = State::kAnswering;
  keeps_alive_ = false;
  is_http_1_0_ = false;
  reply(problem_reply(status, base::Error{code, std::move(detail), {}},
                      environment_.next_request_id()));
}

void Session::dispatch() {
  state_ = State::kAnswering;
  clear_deadline();
  if (!peer_.is_name_known) environment_.name_again(peer_);
  const auto& message = parser_->get();
  keeps_alive_ = message.keep_alive() && !is_stopping_;
  is_http_1_0_ = message.version() < 11;
  HttpRequest request;
  request.id = environment_.next_request_id();
  request.method = std::string(message.method_string());
  request.content_type = header(message, http::field::content_type);
  request.accept = header(message, http::field::accept);
  request.last_event_id = header(message, "Last-Event-ID");
  if (!message.body().empty()) request.body = &message.body();
  const std::string_view raw(message.target().data(), message.target().size());
  auto target = parse_target(raw);
  if (!target) return reply(problem_reply(std::move(target).error(), request.id));
  request.target = *std::move(target);
  environment_.dispatcher.handle(request, *this, environment_.watcher);
}

// ---- answering ----

Calls::Resume Session::resume() {
  return [gate = environment_.gate](std::function<void()> continuation) {
    gate->post(std::move(continuation));
  };
}

std::function<void()> Session::waker() {
  // A weak pointer: the thread that wakes must never be the one that destroys the session.
  return [weak = std::weak_ptr<Exchange>(shared_from_this()), woken = is_woken_,
          &io = environment_.io] {
    if (woken->exchange(true)) return;
    asio::post(io, [weak, woken] {
      woken->store(false);
      const auto session = std::static_pointer_cast<Session>(weak.lock());
      if (session != nullptr && session->state_ == State::kWaiting) session->pump();
    });
  };
}

void Session::keep(std::shared_ptr<void> waiter) {
  waiter_ = std::move(waiter);
  read();
}

bool Session::wants_websocket() const {
  return boost::beast::websocket::is_upgrade(parser_->get());
}

void Session::bridge(ChannelSocket channel) {
  if (state_ != State::kAnswering) return;
  // Bytes that came with the request would be lost: no client may speak before it is answered.
  if (is_stopping_ || !buffer_.empty()) return close();
  state_ = State::kBridged;
  clear_deadline();
  const auto ended = [weak = std::weak_ptr<Exchange>(shared_from_this())] {
    if (const auto session = std::static_pointer_cast<Session>(weak.lock())) session->close();
  };
  bridge_ = std::make_shared<ChannelBridge>(std::move(socket_), std::move(channel), ended);
  bridge_->begin(parser_->get());
}

void Session::reply(Reply reply) {
  if (state_ != State::kAnswering) return;
  const std::shared_ptr<void> waiter = std::move(waiter_);
  source_ = std::move(reply.source);
  is_source_at_end_ = source_ == nullptr;
  if (source_ != nullptr && is_http_1_0_) keeps_alive_ = false;
  if (is_stopping_) keeps_alive_ = false;
  write_head(reply, source_ != nullptr && !is_http_1_0_);
  out_ += reply.body;
  state_ = State::kWriting;
  if (source_ != nullptr) {
    read();  // to notice a client that goes
    pump();
  } else {
    write();
  }
}

void Session::write_head(const Reply& reply, bool is_chunked) {
  out_.clear();
  auto into = std::back_inserter(out_);
  fmt::format_to(into, "HTTP/1.1 {} {}\r\nContent-Type: {}\r\n", reply.status,
                 status_title(reply.status), reply.content_type);
  for (const auto& [name, value] : reply.headers) fmt::format_to(into, "{}: {}\r\n", name, value);
  if (is_chunked) {
    out_ += "Transfer-Encoding: chunked\r\n";
  } else if (source_ == nullptr) {
    fmt::format_to(into, "Content-Length: {}\r\n", reply.body.size());
  }
  if (!keeps_alive_) {
    out_ += "Connection: close\r\n";
  } else if (is_http_1_0_) {
    out_ += "Connection: keep-alive\r\n";
  }
  out_ += "\r\n";
}

// Asks the source for its next piece and writes it behind what is in out_.
void Session::pump() {
  state_ = State::kWriting;
  std::string piece;
  const BodySource::Next next = source_->fill(piece);
  if (next == BodySource::Next::kBroken) return close();
  if (is_http_1_0_) {
    out_ += piece;
  } else if (!piece.empty()) {
    fmt::format_to(std::back_inserter(out_), "{:x}\r\n", piece.size());
    out_ += piece;
    out_ += "\r\n";
  }
  if (next == BodySource::Next::kEnd || (next == BodySource::Next::kWait && is_stopping_)) {
    is_source_at_end_ = true;
    if (!is_http_1_0_) out_ += "0\r\n\r\n";
  }
  if (!out_.empty()) return write();
  if (next == BodySource::Next::kMore) {
    // Nothing came of it, but there may be more: let others have the thread in between.
    asio::post(environment_.io, [session = self()] {
      if (session->state_ == State::kWriting) session->pump();
    });
    return;
  }
  state_ = State::kWaiting;
  clear_deadline();
}

void Session::write() {
  set_deadline(environment_.limits.write_time);
  asio::async_write(
      socket_, asio::buffer(out_),
      [session = self()](const error_code& error, std::size_t) { session->on_written(error); });
}

void Session::on_written(const error_code& error) {
  if (state_ == State::kClosed) return;
  if (error) return close();
  out_.clear();
  // One large answer must not stay in memory for as long as its connection.
  if (out_.capacity() > kMostKept) out_.shrink_to_fit();
  if (!is_source_at_end_) return pump();
  end_of_answer();
}

void Session::end_of_answer() {
  source_.reset();
  if (!keeps_alive_ || is_stopping_) return drain();
  begin_request();
}

// Closing with unread bytes would take the answer away from a client that is still sending.
void Session::drain() {
  state_ = State::kDraining;
  error_code ignored;
  socket_.shutdown(asio::socket_base::shutdown_send, ignored);
  set_deadline(kDrainTime);
  read();
}

void Session::close() {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  // The table's reference may be the last but this one.
  const std::shared_ptr<Session> alive = self();
  source_.reset();
  waiter_.reset();
  if (const auto bridge = std::exchange(bridge_, nullptr)) bridge->close();
  error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
  environment_.closed(this);
}

void Session::begin_stop() {
  is_stopping_ = true;
  switch (state_) {
    case State::kReading:
      if (buffer_.empty() && !parser_->got_some()) close();
      return;
    case State::kAnswering:
      if (waiter_ == nullptr) return;
      keeps_alive_ = false;
      return reply(
          problem_reply(base::Error{base::ErrorCode::kUnavailable, "the daemon is stopping", {}},
                        environment_.next_request_id()));
    case State::kWaiting:
      keeps_alive_ = false;
      return pump();
    case State::kWriting:
      keeps_alive_ = false;
      return;
    case State::kBridged:
      return bridge_->say_goodbye();
    case State::kDraining:
    case State::kClosed:
      return;
  }
}

// ---- time ----

// The timer is set once and only looks at the deadline when it fires: a busy connection moves its
// deadline with every request and must not pay for a timer each time.
void Session::set_deadline(std::chrono::milliseconds after) {
  deadline_ = std::chrono::steady_clock::now() + after;
  if (!is_timer_armed_ || deadline_ < timer_.expiry()) arm_timer();
}

void Session::clear_deadline() {
  deadline_ = std::chrono::steady_clock::time_point::max();
}

void Session::arm_timer() {
  is_timer_armed_ = true;
  timer_.expires_at(deadline_);
  timer_.async_wait([weak = std::weak_ptr<Exchange>(shared_from_this())](const error_code& error) {
    const auto session = std::static_pointer_cast<Session>(weak.lock());
    if (!error && session != nullptr) session->on_deadline();
  });
}

void Session::on_deadline() {
  is_timer_armed_ = false;
  if (state_ == State::kClosed) return;
  if (deadline_ == std::chrono::steady_clock::time_point::max()) return;
  if (std::chrono::steady_clock::now() < deadline_) return arm_timer();
  if (state_ == State::kReading && (parser_->got_some() || !buffer_.empty())) {
    state_ = State::kAnswering;
    keeps_alive_ = false;
    is_http_1_0_ = false;
    return reply(problem_reply(
        408,
        base::Error{base::ErrorCode::kInvalidArgument, "the request took too long to come", {}},
        environment_.next_request_id()));
  }
  close();
}

}  // namespace gpu_platform::api
