#include "listener/grpc/grpc_call.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>

#include "api/convert/problem.h"
#include "base/percent.h"
#include "listener/grpc/health.h"
#include "listener/rest/request.h"

namespace gpu_platform::listener {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::size_t kEnoughOutput = 64 * 1024;
constexpr std::size_t kFreeBytes = 16 * 1024;  // do not count
// The largest page of a list has 4 MiB, unless the site says otherwise.
constexpr std::size_t kMaxAnswer = 64 << 20;
constexpr std::string_view kContentType = "application/grpc";

GrpcStatus refusal_of(GrpcCode code, std::string message) {
  return {code, std::move(message), {}, {}};
}

bool is_success(unsigned status) {
  return status >= 200 && status < 300;
}

}  // namespace

GrpcCall::GrpcCall(Environment environment)
    : environment_(std::move(environment)),
      messages_(environment_.with.limits.body_bytes),
      timer_(environment_.with.io) {}

GrpcCall::~GrpcCall() {
  if (held_bytes_ > 0) environment_.with.connection_table.give_bytes(environment_.key, held_bytes_);
  if (is_watch_) environment_.with.connection_table.leave(environment_.key);
}

// ---- the head

std::string* GrpcCall::field_of(std::string_view name) {
  struct Known {
    std::string_view name;
    std::string Head::* value;
  };
  static constexpr std::array<Known, 11> kKnown = {{{":method", &Head::method},
                                                    {":path", &Head::path},
                                                    {":authority", &Head::authority},
                                                    {"content-type", &Head::content_type},
                                                    {"authorization", &Head::authorization},
                                                    {"origin", &Head::origin},
                                                    {"sec-fetch-site", &Head::fetch_site},
                                                    {"grpc-timeout", &Head::timeout},
                                                    {"grpc-encoding", &Head::encoding},
                                                    {"last-event-id", &Head::last_event_id},
                                                    {"fields", &Head::fields}}};
  const auto found = std::ranges::find(kKnown, name, &Known::name);
  return found == kKnown.end() ? nullptr : &(head_.*found->value);
}

bool GrpcCall::add_field(std::string_view name, std::string_view value) {
  head_bytes_ += name.size() + value.size();
  ++head_fields_;
  const RequestLimits& limits = environment_.with.limits;
  if (head_bytes_ > limits.header_bytes || head_fields_ > limits.header_fields) return false;
  std::string* field = field_of(name);
  if (field == nullptr) return true;
  has_twice_ = has_twice_ || !field->empty();
  *field = value;
  return true;
}

bool GrpcCall::speaks_grpc() {
  std::string_view rest = head_.content_type;
  const bool is_named = rest.starts_with(kContentType);
  rest.remove_prefix(is_named ? kContentType.size() : 0);
  const bool is_grpc = is_named && (rest.empty() || rest == "+proto" || rest.starts_with(';') ||
                                    rest.starts_with("+proto;"));
  if (!is_grpc) http_status_ = 415;
  if (head_.method != "POST") http_status_ = 405;
  return http_status_ == 200;
}

// The rules are those of REST.
std::optional<GrpcStatus> GrpcCall::check_head() {
  if (has_twice_) return refusal_of(GrpcCode::kInvalidArgument, "a header field is repeated");
  if (const base::Status target = check_target(head_.path); !target) {
    return status_of(target.error());
  }
  if (!head_.authorization.empty()) {
    auto bearer = bearer_in(head_.authorization);
    if (!bearer) return status_of(bearer.error());
    bearer_ = *std::move(bearer);
  }
  method_ = find_method(head_.path);
  Request request;
  request.needs_credential = !is_open_to_all();
  request.method = head_.method;
  request.target = head_.path;
  request.bearer = bearer_;
  request.origin = head_.origin;
  request.fetch_site = head_.fetch_site;
  request.is_over_tls = environment_.is_over_tls;
  request.authority = head_.authority;
  const std::string host = host_name_of(head_.authority);
  if (host.empty()) return refusal_of(GrpcCode::kInvalidArgument, ":authority is not a NAME:PORT");
  if (const auto refusal =
          judge(request, host, environment_.with.policy, environment_.has_certificate)) {
    return status_of(refusal->error);
  }
  if (!head_.encoding.empty() && head_.encoding != "identity") {
    return refusal_of(GrpcCode::kUnimplemented,
                      "compressed messages are not supported: send grpc-encoding: identity");
  }
  if (!std::ranges::all_of(head_.last_event_id, [](char c) { return c >= '0' && c <= '9'; })) {
    return refusal_of(GrpcCode::kInvalidArgument, "last-event-id is not a number of an event");
  }
  if (!method_) {
    return refusal_of(GrpcCode::kUnimplemented,
                      fmt::format("there is no call {}: server reflection lists them", head_.path));
  }
  if (method_->kind == GrpcMethod::Kind::kChannel) {
    return refusal_of(
        GrpcCode::kUnimplemented,
        fmt::format("this call is a WebSocket of the REST interface: GET {}", method_->web_path));
  }
  return std::nullopt;
}

void GrpcCall::set_time_limit() {
  if (head_.timeout.empty()) return;
  const auto limit = parse_timeout(head_.timeout);
  if (!limit) return end(refusal_of(GrpcCode::kInvalidArgument, "grpc-timeout is not a time"));
  timer_.expires_after(*limit);
  timer_.async_wait([this, weak = std::weak_ptr(is_alive_)](const error_code& cancelled) {
    if (cancelled || weak.expired()) return;
    end(refusal_of(GrpcCode::kDeadlineExceeded, "the time that the client gave the call is up"));
    const auto wake = environment_.wake;  // the call may be gone before it returns
    wake();
  });
}

void GrpcCall::begin() {
  has_head_ = true;
  moved_at_ = Client::Clock::now();
  if (!speaks_grpc()) return end({});
  if (auto refused = check_head()) return end(*std::move(refused));
  set_time_limit();
}

// ---- the request

void GrpcCall::take(std::string_view bytes) {
  moved_at_ = Client::Clock::now();
  if (is_ended_) return;
  if (const base::Status taken = messages_.put(bytes); !taken) return fail(taken.error());
  if (!hold(messages_.bytes())) return;
  if (method_->kind == GrpcMethod::Kind::kReflection) answer_questions();
}

// A client that asks without reading is cut off by what it may hold.
void GrpcCall::answer_questions() {
  while (const auto question = messages_.next()) {
    const auto answer = reflect(*question);
    if (!answer) return fail(answer.error());
    append_framed(out_, *answer);
    if (!hold(out_.size())) return;
  }
}

void GrpcCall::end_request() {
  has_whole_request_ = true;
  if (is_ended_) return;
  if (!messages_.is_between()) {
    return end(refusal_of(GrpcCode::kInvalidArgument, "the request's message is cut"));
  }
  if (method_->kind == GrpcMethod::Kind::kReflection) return end({});
  method_->is_health() ? answer_health() : take_messages();
}

// Nothing: the request was refused.
std::optional<std::string> GrpcCall::only_message() {
  auto message = messages_.next();
  if (message && !messages_.next()) return message;
  end(refusal_of(GrpcCode::kInvalidArgument, "the request is one message"));
  return std::nullopt;
}

void GrpcCall::answer_health() {
  const auto message = only_message();
  if (!message) return;
  const auto service = service_asked_for(*message);
  if (!service) return fail(service.error());
  const bool is_known = is_service(*service);
  const bool is_check = method_->kind == GrpcMethod::Kind::kHealthCheck;
  if (is_check && !is_known) {
    return end(
        refusal_of(GrpcCode::kNotFound,
                   fmt::format("there is no service {}: server reflection lists them", *service)));
  }
  if (!is_check && !environment_.with.connection_table.enter(environment_.key)) {
    return end(refusal_of(GrpcCode::kResourceExhausted,
                          "too many connections and watches come from this address"));
  }
  is_watch_ = !is_check;
  append_framed(out_, health_message(is_known ? Health::kServing : Health::kServiceUnknown));
  if (is_check) end({});
}

void GrpcCall::begin_stop() {
  if (!is_watch_ || is_ended_) return;
  append_framed(out_, health_message(Health::kNotServing));
  end(refusal_of(GrpcCode::kUnavailable, "the server ends"));
}

void GrpcCall::take_messages() {
  const auto message = only_message();
  if (!message) return;
  auto json = request_for_daemon(*method_->call, *message);
  if (!json) return fail(json.error());
  request_ = *std::move(json);
  open();
}

// Counts the bytes that the call holds. False: there are too many.
bool GrpcCall::hold(std::size_t bytes) {
  if (bytes <= kFreeBytes || bytes <= held_bytes_) return true;
  if (environment_.with.connection_table.take_bytes(environment_.key, bytes - held_bytes_)) {
    held_bytes_ = bytes;
    return true;
  }
  end(refusal_of(GrpcCode::kResourceExhausted,
                 "many large messages are under way: try again in a moment"));
  return false;
}

// ---- the daemon

void GrpcCall::open() {
  auto link = environment_.links.take(bearer_);
  if (!link) return fail(link.error());
  link_ = *std::move(link);
  Request request;
  request.method = "POST";
  request.target = head_.path;
  if (!head_.fields.empty()) request.target += "?fields=" + base::percent_encoded(head_.fields);
  request.fields = {{"Content-Type", "application/json"}, {"Accept", "application/json"}};
  if (!head_.last_event_id.empty()) {
    request.fields.emplace_back("Last-Event-ID", head_.last_event_id);
  }
  request.body = *std::exchange(request_, std::nullopt);
  to_daemon_ = head_for_daemon(request) + request.body;
  parser_.emplace();
  parser_->eager(true);
  parser_->body_limit(boost::none);
}

void GrpcCall::advance() {
  if (link_ == nullptr || is_ended_ || !send()) return;
  while (!is_ended_ && out_.size() - read_ < kEnoughOutput && receive()) continue;
}

// False: the rest waits.
bool GrpcCall::send() {
  while (sent_ < to_daemon_.size()) {
    const ssize_t sent = ::send(link_->socket().native_handle(), to_daemon_.data() + sent_,
                                to_daemon_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) {
      wait(true);
      break;  // it may answer before it has read all
    }
    // A daemon that takes no more has answered, or is gone: what it sent shows which.
    sent_ = sent < 0 ? to_daemon_.size() : sent_ + static_cast<std::size_t>(sent);
  }
  return true;
}

// The next piece of the answer. False: it is waited for, or the call is over.
bool GrpcCall::receive() {
  auto& scratch = environment_.with.scratch;
  const ssize_t got =
      ::recv(link_->socket().native_handle(), scratch.data(), scratch.size(), MSG_DONTWAIT);
  if (got > 0) {
    read_answer({scratch.data(), static_cast<std::size_t>(got)});
    return true;
  }
  if (got < 0 && errno == EINTR) return true;
  if (got < 0 && errno == EAGAIN) {
    wait(false);
    return false;
  }
  end(refusal_of(GrpcCode::kUnavailable, "the daemon has not answered to the end: try again"));
  return false;
}

void GrpcCall::read_answer(std::string_view bytes) {
  in_ += bytes;
  error_code error;
  std::size_t taken = 0;
  while (taken < in_.size() && !parser_->is_done() && !error) {
    taken += parser_->put(asio::const_buffer(in_.data() + taken, in_.size() - taken), error);
  }
  in_.erase(0, taken);
  if (error && error != http::error::need_more) {
    return end(refusal_of(GrpcCode::kInternal, "the daemon's answer cannot be read"));
  }
  if (!parser_->is_header_done()) return;
  const auto& answer = parser_->get();
  const bool is_text = answer[http::field::content_type].starts_with("text/event-stream");
  is_stream_ = is_text && is_success(answer.result_int());
  std::string body = std::move(parser_->get().body());
  parser_->get().body().clear();
  take_body(std::move(body));
  if (!is_ended_ && parser_->is_done()) end_answer();
}

void GrpcCall::take_body(std::string&& body) {
  if (is_stream_) return take_events(body);
  body_ += body;
  if (body_.size() > kMaxAnswer) {
    return end(refusal_of(GrpcCode::kResourceExhausted, "the answer is too large: ask for less"));
  }
  hold(body_.size());
}

void GrpcCall::take_events(std::string_view bytes) {
  events_.feed(bytes);
  while (const auto event = events_.next()) {
    if (event->name == "error") return fail(api::read_problem(500, event->data).error);
    put_answer(event->data);
    if (is_ended_) return;
  }
}

void GrpcCall::put_answer(std::string_view json) {
  const auto message = answer_for_client(*method_->call, json);
  if (!message) {
    return end(refusal_of(GrpcCode::kInternal,
                          "the daemon's answer cannot be read: " + message.error().message));
  }
  append_framed(out_, *message);
}

void GrpcCall::end_answer() {
  const unsigned status = parser_->get().result_int();
  GrpcStatus last;
  if (!is_success(status)) {
    api::Problem problem = api::read_problem(static_cast<int>(status), body_);
    last = status_of(problem.error);
    last.request_id = std::move(problem.request_id);
  } else if (!is_stream_) {
    put_answer(body_);
    if (is_ended_) return;
  }
  const bool may_stay = parser_->keep_alive() && sent_ == to_daemon_.size() && in_.empty() &&
                        last.code != GrpcCode::kUnauthenticated;
  if (may_stay) environment_.links.give_back(std::move(link_));
  end(std::move(last));
}

void GrpcCall::end(GrpcStatus status) {
  if (is_ended_) return;
  is_ended_ = true;
  status_ = std::move(status);
  link_.reset();
  timer_.cancel();
  std::string().swap(body_);
  std::string().swap(to_daemon_);
  // What was not sent of an answer that breaks off is still sent: it is whole messages.
}

void GrpcCall::wait(bool to_write) {
  bool& waits = to_write ? waits_to_write_ : waits_to_read_;
  if (std::exchange(waits, true)) return;
  link_->socket().async_wait(
      to_write ? asio::socket_base::wait_write : asio::socket_base::wait_read,
      [&waits, weak = std::weak_ptr(is_alive_), wake = environment_.wake](const error_code& error) {
        if (weak.expired()) return;
        waits = false;
        if (error != asio::error::operation_aborted) wake();
      });
}

// ---- the answer

std::size_t GrpcCall::read(std::span<char> into) {
  const std::size_t size = std::min(into.size(), out_.size() - read_);
  std::copy_n(out_.data() + read_, size, into.data());
  read_ += size;
  if (size > 0) moved_at_ = Client::Clock::now();
  if (read_ == out_.size()) {
    std::string().swap(out_);
    read_ = 0;
  }
  return size;
}

void GrpcCall::tick(Client::Clock::time_point now) {
  const Times& times = environment_.with.times;
  is_stuck_ = has_output() && now - moved_at_ > times.write;
  if (is_ended_ || has_whole_request_ || now - moved_at_ <= times.request) return;
  end(refusal_of(GrpcCode::kDeadlineExceeded, "the request did not arrive in time"));
}

}  // namespace gpu_platform::listener
