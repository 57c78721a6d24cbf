#include "listener/rest/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "api/convert/problem.h"
#include "listener/rest/browser_session.h"

namespace gpu_platform::listener {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kMaxPending = 16 * 1024;  // of the client, while it is being answered
constexpr std::size_t kMaxKept = 16 * 1024;     // memory of a buffer that is empty
constexpr std::size_t kSmallBody = 16 * 1024;   // does not count
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

void forget(std::string& text) {
  text.clear();
  if (text.capacity() > kMaxKept) text.shrink_to_fit();
}

}  // namespace

Connection::Connection(ClientContext context, AcceptedClient accepted)
    : with_(context), stream_(*this, context, std::move(accepted)) {}

void Connection::begin() {
  stream_.begin();
  go();
}

void Connection::go() {
  const auto alive = shared_from_this();
  bool has_more = true;
  while (has_more) {
    switch (state_) {
      case State::kGreeting:
        has_more = greet();
        break;
      case State::kReading:
        has_more = read_request();
        break;
      case State::kAnswering:
        has_more = answer();
        break;
      case State::kSpliced:
        has_more = splice();
        break;
      case State::kDraining:
        return stream_.drain();
      case State::kClosed:
        return;
    }
  }
}

bool Connection::greet() {
  if (!stream_.handshake()) return false;
  state_ = State::kReading;
  stream_.set_deadline(with_.times.first_request);
  return true;
}

// ---- the request

bool Connection::read_request() {
  if (is_stopping_ && reader_ == nullptr) {
    close();
    return false;
  }
  if (!in_.empty()) {
    const std::string bytes = std::exchange(in_, {});
    return take(bytes);
  }
  const auto bytes = stream_.read();
  return bytes && take(*bytes);
}

bool Connection::take(std::string_view bytes) {
  if (reader_ == nullptr) {
    reader_ = std::make_unique<RequestReader>(with_.limits);
    is_head_judged_ = false;
    stream_.set_deadline(with_.times.request);
  }
  in_ = bytes.substr(reader_->put(bytes));
  if (reader_->has_head() && !is_head_judged_ && !judge_head()) return true;
  if (reader_->refusal()) return refuse(*reader_->refusal());
  if (!hold_body()) {
    return refuse({503,
                   {base::ErrorCode::kUnavailable,
                    "many large requests are under way: try again in a moment",
                    {}}});
  }
  return reader_->is_done() ? begin_exchange() : true;
}

// Before the body is waited for. False: it was refused.
bool Connection::judge_head() {
  is_head_judged_ = true;
  Request& request = reader_->request();
  request.is_over_tls = stream_.is_over_tls();
  if (const auto refusal = enter_session(request, with_.policy)) {
    refuse(*refusal);
    return false;
  }
  if (const auto refusal =
          judge(request, reader_->host(), with_.policy, !stream_.proof().empty())) {
    refuse(*refusal);
    return false;
  }
  if (request.expects_continue && !reader_->is_done()) {
    // These few bytes fit into the empty buffer of a client that waits for them.
    stream_.write_if_possible(kContinue);
  }
  return true;
}

bool Connection::hold_body() {
  const std::size_t bytes = reader_->body_bytes();
  if (bytes <= kSmallBody || bytes <= held_bytes_) return true;
  if (!with_.connection_table.take_bytes(stream_.key(), bytes - held_bytes_)) return false;
  held_bytes_ = bytes;
  return true;
}

bool Connection::begin_exchange() {
  Request& request = reader_->request();
  is_last_ = !request.keeps_alive || is_stopping_;
  if (auto own = own_answer(request)) {
    for (auto& field : fields_for(request)) own->fields.push_back(std::move(field));
    return begin_own(*std::move(own), is_last_);
  }
  if (auto ended = end_session(request)) return begin_own(*std::move(ended), is_last_);
  const bool begins_session = begin_session(request);
  if (!open_daemon(request)) return true;
  state_ = State::kAnswering;
  stream_.clear_deadline();
  to_daemon_ = head_for_daemon(request);
  to_daemon_ += request.body;
  std::string().swap(request.body);
  sent_ = 0;
  answer_ = std::make_unique<AnswerReader>(
      fields_for(request),
      AnswerReader::Options{.is_last = is_last_, .has_head_alone = is_head(request)},
      begins_session ? session_fields(request) : AnswerFields());
  send_request();
  return true;
}

// ---- the daemon

// False: it was refused.
bool Connection::open_daemon(const Request& request) {
  if (daemon_ && (bearer_ != request.bearer || is_daemon_gone())) close_daemon();
  if (daemon_) return true;
  // A token counts before a certificate: it may be for less than all that the user may do.
  const Credential credential =
      request.bearer.empty()
          ? Credential{Credential::Kind::kCertificate, stream_.proof(), stream_.address()}
          : Credential{Credential::Kind::kBearer, request.bearer, stream_.address()};
  const auto opened = with_.upstream.open(credential);
  if (!opened) {
    refuse({api::http_status(opened.error().code), opened.error()});
    return false;
  }
  bearer_ = request.bearer;
  ++daemon_number_;
  daemon_.emplace(with_.io);
  error_code error;
  daemon_->assign(asio::local::stream_protocol(), *opened, error);
  return true;
}

// It closes connections when it stops, and those that are idle.
bool Connection::is_daemon_gone() {
  char byte = 0;
  const ssize_t got = ::recv(daemon_->native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got >= 0 || errno != EAGAIN;
}

void Connection::close_daemon() {
  if (!daemon_) return;
  error_code ignored;
  daemon_->close(ignored);
  daemon_.reset();
  waits_to_read_ = waits_to_write_ = false;
  bearer_.clear();
}

void Connection::send_request() {
  while (sent_ < to_daemon_.size()) {
    const ssize_t sent = ::send(daemon_->native_handle(), to_daemon_.data() + sent_,
                                to_daemon_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return wait_for_daemon(true);
    // A daemon that takes no more has answered, or is gone: the reader sees which.
    sent_ = sent < 0 ? to_daemon_.size() : sent_ + static_cast<std::size_t>(sent);
  }
  forget(to_daemon_);
  sent_ = 0;
}

// ---- the answer

// Of the request that has come so far.
bool Connection::wants_head_alone() const {
  return reader_ != nullptr && reader_->has_head() && is_head(reader_->request());
}

bool Connection::begin_own(OwnAnswer answer, bool is_last) {
  is_last_ = is_last;
  state_ = State::kAnswering;
  answer_.reset();
  auto into = std::back_inserter(stream_.output());
  fmt::format_to(into, "HTTP/1.1 {} {}\r\n", answer.status, api::status_title(answer.status));
  for (const auto& [name, value] : answer.fields) fmt::format_to(into, "{}: {}\r\n", name, value);
  if (!answer.content_type.empty()) {
    fmt::format_to(into, "Content-Type: {}\r\nContent-Length: {}\r\n", answer.content_type,
                   answer.body.size());
  }
  stream_.output() += is_last ? "Connection: close\r\n\r\n" : "\r\n";
  if (!wants_head_alone()) stream_.output() += answer.body;
  return true;
}

bool Connection::refuse(const Refusal& refusal) {
  OwnAnswer own{refusal.status, "application/problem+json", {}, {}};
  const std::string id = fmt::format("l{}", with_.refusals.fetch_add(1) + 1);
  own.body = api::to_json(api::Problem{refusal.status, refusal.error, id});
  own.fields = {{"X-Content-Type-Options", "nosniff"}};
  if (refusal.status == 401) own.fields.emplace_back("WWW-Authenticate", "Bearer");
  if (refusal.status == 405) own.fields.emplace_back("Allow", known_methods());
  in_.clear();
  return begin_own(std::move(own), true);
}

bool Connection::answer() {
  if (!stream_.flush()) return false;
  if (answer_ == nullptr) return end_exchange();
  if (answer_->is_switching()) {
    state_ = State::kSpliced;
    stream_.clear_deadline();
    return true;
  }
  if (answer_->is_done()) return end_exchange();
  if (!to_daemon_.empty()) send_request();
  return receive();
}

// The next piece of the daemon. False: it is waited for, or the connection is over.
bool Connection::receive() {
  const ssize_t got =
      ::recv(daemon_->native_handle(), with_.scratch.data(), with_.scratch.size(), MSG_DONTWAIT);
  if (got > 0) {
    if (answer_->put({with_.scratch.data(), static_cast<std::size_t>(got)}, stream_.output()))
      return true;
    close();
    return false;
  }
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && errno == EAGAIN) {
    wait_for_daemon(false);
    return watch_client();
  }
  if (answer_->finish()) return true;
  if (answer_->has_head()) {
    close();  // the client sees that the answer is cut
    return false;
  }
  close_daemon();
  return refuse(
      {503, {base::ErrorCode::kUnavailable, "the daemon has not answered: try again", {}}});
}

// Notices a client that goes; its next requests wait. Never more to do.
bool Connection::watch_client() {
  while (in_.size() < kMaxPending) {
    const auto bytes = stream_.read();
    if (!bytes) return false;
    in_.append(*bytes);
  }
  return false;
}

bool Connection::end_exchange() {
  if (answer_ != nullptr) {
    const bool is_refused = answer_->status() == 401;
    is_known_ = is_known_ || !is_refused;
    if (is_refused || answer_->daemon_closes() || !to_daemon_.empty()) close_daemon();
    daemon_idle_since_ = Clock::now();
  }
  answer_.reset();
  reader_.reset();
  forget(to_daemon_);
  if (held_bytes_ > 0)
    with_.connection_table.give_bytes(stream_.key(), std::exchange(held_bytes_, 0));
  if (!is_last_) {
    state_ = State::kReading;
    stream_.set_deadline(is_known_ ? with_.times.idle : with_.times.first_request);
    return true;
  }
  close_daemon();
  state_ = State::kDraining;
  stream_.finish();
  return true;
}

// Bytes in both directions; each waits for its own reader.
bool Connection::splice() {
  bool has_more = false;
  if (!to_daemon_.empty()) send_request();
  if (to_daemon_.empty()) {
    if (in_.empty()) {
      if (const auto bytes = stream_.read()) {
        in_.assign(*bytes);
      } else if (state_ == State::kClosed) {
        return false;
      }
    }
    if (!in_.empty()) {
      to_daemon_ = std::exchange(in_, {});
      send_request();
      has_more = true;
    }
  }
  if (!stream_.flush()) return has_more && state_ != State::kClosed;
  const ssize_t got =
      ::recv(daemon_->native_handle(), with_.scratch.data(), with_.scratch.size(), MSG_DONTWAIT);
  if (got > 0) {
    stream_.output().assign(with_.scratch.data(), static_cast<std::size_t>(got));
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    wait_for_daemon(false);
    return has_more && to_daemon_.empty();
  }
  is_last_ = true;
  return end_exchange();
}

// ---- waiting

void Connection::wait_for_daemon(bool to_write) {
  bool& waits = to_write ? waits_to_write_ : waits_to_read_;
  if (std::exchange(waits, true)) return;
  daemon_->async_wait(to_write ? asio::socket_base::wait_write : asio::socket_base::wait_read,
                      [self = self(), &waits, number = daemon_number_](const error_code& error) {
                        if (number != self->daemon_number_ || !self->daemon_) return;
                        waits = false;
                        // An error of the connection itself shows when it is read.
                        if (error != asio::error::operation_aborted) self->go();
                      });
}

void Connection::tick(Clock::time_point now) {
  if (state_ == State::kReading && reader_ == nullptr && daemon_ &&
      now - daemon_idle_since_ > with_.times.upstream_idle) {
    close_daemon();
  }
  if (!stream_.is_overdue(now)) return;
  const bool has_begun = state_ == State::kReading && reader_ != nullptr;
  if (!has_begun) return close();
  refuse({408, {base::ErrorCode::kInvalidArgument, "the request did not arrive in time", {}}});
  stream_.clear_deadline();
  go();
}

void Connection::begin_stop() {
  is_stopping_ = true;
  is_last_ = true;
  if (state_ == State::kGreeting || (state_ == State::kReading && reader_ == nullptr)) close();
}

void Connection::close() {
  if (state_ == State::kClosed) return;
  const auto alive = shared_from_this();
  state_ = State::kClosed;
  close_daemon();
  if (held_bytes_ > 0)
    with_.connection_table.give_bytes(stream_.key(), std::exchange(held_bytes_, 0));
  stream_.close();
}

}  // namespace gpu_platform::listener
