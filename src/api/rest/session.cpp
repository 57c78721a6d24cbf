#include "api/rest/session.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "api/convert/problem.h"
#include "api/rest/answer_head.h"
#include "api/rest/channel_bridge.h"
#include "api/rest/replies.h"
#include "base/check.h"
#include "os/clock.h"

namespace gpu_platform::api {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

// Bytes that may be read and dropped after an answer that ends the connection.
constexpr std::uint64_t kMaxDrained = 16 << 20;
constexpr std::chrono::milliseconds kDrainTime{2'000};
// What a channel's client is told at the end.
constexpr const char* kStopping = "the daemon is stopping";
constexpr const char* kCredentialEnded = "the credential no longer holds";

}  // namespace

Session::Session(LocalSocket socket, Peer peer, Environment environment)
    : socket_(std::move(socket)),
      peer_(std::move(peer)),
      environment_(std::move(environment)),
      parser_(environment_.limits),
      request_bytes_(environment_.budgets.bodies, environment_.holder),
      answer_bytes_(environment_.budgets.answers, environment_.holder),
      stream_(environment_.budgets.streams, environment_.holder),
      channel_(environment_.budgets.channels, environment_.holder),
      is_woken_(std::make_shared<std::atomic<bool>>(false)),
      timer_(environment_.io) {}

void Session::start() {
  if (state_ == State::kClosed) return;
  // A write that is not waited for (100 Continue) must not make the thread wait either.
  error_code ignored;
  socket_.non_blocking(true, ignored);
  begin_request();
}

// ---- reading ----

void Session::begin_request() {
  state_ = State::kReading;
  parser_.begin();
  if (parser_.has_rest()) {
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
    return drained_ > kMaxDrained ? close() : read();
  }
  const bool is_first = state_ == State::kReading && !parser_.has_begun();
  parser_.add(chunk_.data(), bytes);
  if (state_ == State::kReading) {
    if (is_first) set_deadline(environment_.limits.request_time);
    return parse();
  }
  // Only to notice a client that goes: its next request waits.
  if (parser_.takes_more()) read();
}

// The client sends no more. One that only closed its sending side still reads the answer.
void Session::on_client_finished() {
  keeps_alive_ = false;
  socket_.async_wait(asio::socket_base::wait_error, [session = self()](const error_code& error) {
    if (!error) session->close();
  });
}

void Session::parse() {
  if (auto refusal = parser_.parse()) return refuse(refusal->status, std::move(refusal->error));
  if (auto taken = request_bytes_.try_become(bytes_under_way()); !taken) {
    base::Error refusal = std::move(taken).error();
    return refuse(http_status(refusal.code), std::move(refusal));
  }
  if (parser_.is_done()) return dispatch();
  continue_if_expected();
  read();
}

// Those of the request beyond what every connection may have.
std::uint64_t Session::bytes_under_way() const {
  const std::size_t bytes = parser_.bytes();
  return bytes > kKeptBytes ? bytes : 0;
}

void Session::continue_if_expected() {
  if (!parser_.takes_expectation()) return;
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  // These few bytes fit into the empty socket buffer of a client that waits for them.
  error_code ignored;
  socket_.write_some(asio::buffer(kContinue), ignored);
}

// Refuses a request that was not read to its end. The connection ends with the answer.
void Session::refuse(int status, base::Error error) {
  begin_answer();
  keeps_alive_ = false;
  is_http_1_0_ = false;
  parser_.drop_rest();
  reply(problem_reply(status, std::move(error), request_id_));
}

void Session::begin_answer() {
  request_id_ = environment_.next_request_id();
  state_ = State::kAnswering;
  known_tags_.reset();
  call_ = {};
  is_head_ = parser_.has_head() && parser_.message().method() == http::verb::head;
  answer_began_ns_ = os::monotonic_ns();
}

void Session::dispatch() {
  begin_answer();
  clear_deadline();
  if (!peer_.is_name_known) environment_.name_again(peer_);
  const RequestParser::Message& message = parser_.message();
  keeps_alive_ = message.keep_alive() && !is_stopping_;
  is_http_1_0_ = message.version() < 11;
  HttpRequest request;
  request.id = request_id_;
  // It is answered as GET is, and what follows the head is left out in the end.
  request.method = is_head_ ? "GET" : std::string(message.method_string());
  request.content_type = field_of(message, http::field::content_type);
  request.accept = field_of(message, http::field::accept);
  request.last_event_id = field_of(message, "Last-Event-ID");
  if (request.method == "GET") {
    known_tags_ = field_of(message, http::field::if_none_match);
  }
  if (!message.body().empty()) request.body = &message.body();
  const std::string_view raw(message.target().data(), message.target().size());
  if (environment_.admit) {
    if (auto admitted = environment_.admit(peer_); !admitted) {
      keeps_alive_ = false;
      return reply(problem_reply(std::move(admitted).error(), request.id));
    }
  }
  auto target = parse_target(raw);
  if (!target) return reply(problem_reply(std::move(target).error(), request.id));
  request.target = *std::move(target);
  // A client that reads nothing is asked to, before anything is made for it.
  if (auto capacity = environment_.budgets.answers.check_capacity(environment_.holder); !capacity) {
    return reply(problem_reply(std::move(capacity).error(), request.id));
  }
  environment_.dispatcher.handle(request, *this, environment_.watcher);
  parser_.drop_body();
}

// ---- answering ----

// What a call goes on with is not done for a credential that has ended meanwhile. One that is a
// token is the core's affair: the call itself may have ended it.
Resume Session::resume() {
  return [gate = environment_.gate,
          weak = std::weak_ptr<Exchange>(shared_from_this())](std::function<void()> continuation) {
    gate->post([weak, continuation = std::move(continuation)] {
      const auto session = std::static_pointer_cast<Session>(weak.lock());
      const bool is_signed = session != nullptr && session->peer_.identity != nullptr;
      if (!is_signed || session->state_ == State::kClosed) return continuation();
      if (auto admitted = session->environment_.admit(session->peer_); !admitted) {
        return session->end_unadmitted(std::move(admitted).error());
      }
      continuation();
    });
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
  if (environment_.admit) set_deadline(environment_.limits.admit_every);
  read();
}

base::Status Session::begin_stream() {
  return stream_.try_become(1);
}

base::Status Session::begin_channel() {
  return channel_.try_become(1);
}

bool Session::wants_websocket() const {
  return !is_head_ && boost::beast::websocket::is_upgrade(parser_.message());
}

void Session::bridge(ChannelSocket channel) {
  if (state_ != State::kAnswering) return;
  // The job's own part needs time to open one.
  if (environment_.admit) {
    if (auto admitted = environment_.admit(peer_); !admitted) {
      return end_unadmitted(std::move(admitted).error());
    }
  }
  // Bytes that came with the request would be lost: no client may speak before it is answered.
  if (is_stopping_ || parser_.has_rest()) return close();
  count_answer(101);
  state_ = State::kBridged;
  environment_.admit ? set_deadline(environment_.limits.admit_every) : clear_deadline();
  const auto ended = [weak = std::weak_ptr<Exchange>(shared_from_this())] {
    if (const auto session = std::static_pointer_cast<Session>(weak.lock())) session->close();
  };
  bridge_ = std::make_shared<ChannelBridge>(std::move(socket_), std::move(channel), ended);
  bridge_->begin(parser_.message());
}

void Session::count_answer(int status) {
  const double seconds = static_cast<double>(os::monotonic_ns() - answer_began_ns_) / 1e9;
  environment_.meter.note(call_, status, seconds);
  constexpr int kFirstRefusal = 400;
  constexpr double kSlowSeconds = 1;
  const bool is_slow = seconds >= kSlowSeconds && waiter_ == nullptr;
  if (!environment_.notable || (status < kFirstRefusal && !is_slow)) return;
  environment_.notable(peer_, {request_id_, call_, status, seconds});
}

// What was found for a credential is not told once it holds no longer, however late that is. The
// connection ends then, as with a request that is refused for it.
void Session::withhold_if_ended(Reply& reply) {
  if (!environment_.admit || reply.outlives_credential) return;
  auto admitted = environment_.admit(peer_);
  if (admitted) return;
  reply = problem_reply(std::move(admitted).error(), request_id_);
  keeps_alive_ = false;
}

void Session::end_unadmitted(base::Error why) {
  if (state_ != State::kAnswering) return close();
  reply(problem_reply(std::move(why), request_id_));
}

void Session::reply(Reply reply) {
  if (state_ != State::kAnswering) return;
  withhold_if_ended(reply);
  if (known_tags_ && reply.status == 200 && reply.source == nullptr) tag_reply(reply, *known_tags_);
  count_answer(reply.status);
  const std::shared_ptr<void> waiter = std::move(waiter_);
  source_ = is_head_ ? nullptr : std::move(reply.source);
  is_source_at_end_ = source_ == nullptr;
  if (source_ != nullptr && is_http_1_0_) keeps_alive_ = false;
  if (is_stopping_) keeps_alive_ = false;
  write_head(reply);
  if (!is_head_) body_ = std::move(reply.body);
  parser_.drop_body();
  request_bytes_.become(0);
  if (source_ == nullptr) stream_.become(0);
  state_ = State::kWriting;
  if (source_ != nullptr) {
    read();  // to notice a client that goes
    pump();
  } else {
    write();
  }
}

void Session::write_head(const Reply& reply) {
  out_.clear();
  append_head(out_, reply,
              {.is_chunked = source_ != nullptr && !is_http_1_0_,
               .has_length = source_ == nullptr && reply.source == nullptr,
               .keeps_alive = keeps_alive_,
               .is_http_1_0 = is_http_1_0_});
}

// Returns whether more answers may be made for a client, although its user has many unread ones. If
// not, the client is asked again when there is room, and closed if that takes too long.
bool Session::may_go_on() {
  Budget& answers = environment_.budgets.answers;
  if (answers.check_capacity(environment_.holder)) return true;
  drop_buffer();
  const bool has_waited = state_ == State::kWaiting && is_in_line_;
  state_ = State::kWaiting;
  if (!has_waited) set_deadline(environment_.limits.write_time);
  if (std::exchange(is_in_line_, true)) return false;
  answers.call_when_less(environment_.holder, [weak = std::weak_ptr<Exchange>(shared_from_this()),
                                               gate = environment_.gate] {
    gate->post([weak] {
      const auto session = std::static_pointer_cast<Session>(weak.lock());
      if (session == nullptr) return;
      session->is_in_line_ = false;
      if (session->state_ == State::kWaiting) session->pump();
    });
  });
  return false;
}

// Asks the source for its next piece and writes it behind what is in out_.
void Session::pump() {
  // A stream ends with the credential that it was opened with.
  if (environment_.admit && !environment_.admit(peer_)) return close();
  if (!may_go_on()) return;
  state_ = State::kWriting;
  is_source_resting_ = false;
  // The size has its place from the start, because a piece may be too large to be moved.
  static constexpr std::string_view kNoSize = "00000000\r\n";
  const std::size_t begin = out_.size();
  if (!is_http_1_0_) out_ += kNoSize;
  const std::size_t piece = out_.size();
  const BodySource::Next next = source_->fill(out_);
  if (next == BodySource::Next::kBroken) return close();
  if (out_.size() == piece) {
    out_.resize(begin);
  } else if (!is_http_1_0_) {
    const std::string size = fmt::format("{:08x}", out_.size() - piece);
    CHECK(size.size() + 2 == kNoSize.size());
    out_.replace(begin, size.size(), size);
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
  drop_buffer();
  state_ = State::kWaiting;
  environment_.admit ? set_deadline(environment_.limits.admit_every) : clear_deadline();
}

void Session::write() {
  const std::size_t bytes = out_.size() + body_.size();
  answer_bytes_.become(bytes > kKeptBytes ? bytes : 0);
  const SessionLimits& limits = environment_.limits;
  set_deadline(source_ == nullptr ? limits.write_time
                                  : std::min(limits.slow_after, limits.write_time));
  const std::array<asio::const_buffer, 2> pieces = {asio::buffer(out_), asio::buffer(body_)};
  asio::async_write(socket_, pieces, [session = self()](const error_code& error, std::size_t) {
    session->on_written(error);
  });
}

void Session::on_written(const error_code& error) {
  if (state_ == State::kClosed) return;
  if (error) return close();
  out_.clear();
  std::string().swap(body_);
  answer_bytes_.become(0);
  if (!is_source_at_end_) return pump();
  drop_buffer();
  end_of_answer();
}

// A large answer must not stay in memory for as long as its connection. Its pieces use the same
// memory while they follow each other.
void Session::drop_buffer() {
  if (out_.empty() && out_.capacity() > kKeptBytes) out_.shrink_to_fit();
}

void Session::end_of_answer() {
  source_.reset();
  stream_.become(0);
  channel_.become(0);
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
  for (Lease* lease : {&request_bytes_, &answer_bytes_, &stream_, &channel_}) lease->become(0);
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
      if (!parser_.has_begun()) close();
      return;
    case State::kAnswering:
      if (waiter_ == nullptr) return;
      keeps_alive_ = false;
      return reply(problem_reply(
          base::Error{base::ErrorCode::kUnavailable, "the daemon is stopping", {}}, request_id_));
    case State::kWaiting:
      keeps_alive_ = false;
      return pump();
    case State::kWriting:
      keeps_alive_ = false;
      return;
    case State::kBridged:
      return bridge_->leave({boost::beast::websocket::close_code::going_away, kStopping});
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

// A channel has no requests to ask at, and a stream or a long poll no news to tell: they may be
// silent for days.
void Session::admit_again() {
  auto admitted = environment_.admit(peer_);
  if (admitted) return set_deadline(environment_.limits.admit_every);
  if (state_ != State::kBridged) return end_unadmitted(std::move(admitted).error());
  bridge_->leave({boost::beast::websocket::close_code::policy_error, kCredentialEnded});
}

void Session::on_deadline() {
  is_timer_armed_ = false;
  if (state_ == State::kClosed) return;
  if (deadline_ == std::chrono::steady_clock::time_point::max()) return;
  if (std::chrono::steady_clock::now() < deadline_) return arm_timer();
  const bool is_silent = state_ == State::kBridged || state_ == State::kAnswering ||
                         (state_ == State::kWaiting && !is_in_line_);
  if (is_silent) return admit_again();
  if (state_ == State::kReading && parser_.has_begun()) {
    return refuse(
        408,
        base::Error{base::ErrorCode::kInvalidArgument, "the request did not arrive in time", {}});
  }
  if (state_ == State::kWriting && source_ != nullptr && !std::exchange(is_source_resting_, true)) {
    source_->rest();
    return set_deadline(environment_.limits.write_time);
  }
  close();
}

}  // namespace gpu_platform::api
