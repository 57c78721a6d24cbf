#include "execution/container/engine_calls.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "execution/container/answer_fields.h"
#include "os/clock.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

constexpr int kOurMinor = 50;    // of API version 1
constexpr int kLeastMinor = 40;  // below it the calls differ
constexpr std::size_t kMaxWords = 300;
constexpr base::Duration kLook = base::seconds(5);  // how often an endless wait is looked at
constexpr std::int64_t kAnswerMs = 120'000;         // for the whole of a usual answer

// "1.41" -> 41; 0: it is no version of API 1.
int minor_of(const std::string& text) {
  int minor = 0;
  if (!text.starts_with("1.")) return 0;
  std::from_chars(text.data() + 2, text.data() + text.size(), minor);
  return minor;
}

// Docker and Podman both have "message"; a proxy has anything.
std::string words_of(const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  if (json.is_object() && json.contains("message") && json["message"].is_string()) {
    return json["message"].get<std::string>().substr(0, kMaxWords);
  }
  return body.substr(0, kMaxWords);
}

using Why = http::TransportError::Kind;

EngineFailure failure_of(const http::TransportError& error) {
  switch (error.kind) {
    case Why::kNoDaemon:
      return {0, "nothing answers there", true};
    case Why::kBroken:
      return {0, "it hung up before its answer", true};
    case Why::kTimedOut:
      return {0, "it does not answer", true};
    case Why::kMalformed:
      return {0, "what it answers is not HTTP", true};
    case Why::kInterrupted:
      return {0, "stopped meanwhile"};
    case Why::kUntrusted:
      break;
  }
  return {0, error.message};
}

http::HttpRequest request_for(std::string_view method, std::string_view path, const Json& body) {
  http::HttpRequest request;
  request.method = method;
  request.target = path;
  if (!body.is_null()) request.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  return request;
}

}  // namespace

EngineCalls::EngineCalls(std::string socket, int interrupt_fd, std::function<bool()> on_interrupt)
    : interrupt_fd_(interrupt_fd), on_interrupt_(std::move(on_interrupt)) {
  server_.path = std::move(socket);
}

// Podman takes nearly half a second to say its version, for which it starts other programs, and
// none to answer a ping, which says it, too. Only the oldest that an engine speaks is not there.
Answered<> EngineCalls::open() {
  prefix_.clear();
  const auto pong = ping();
  if (!pong && (pong.error().is_away || pong.error().status >= 500)) {
    return std::unexpected(pong.error());
  }
  is_podman_ = pong && pong->is_podman;
  const int newest = pong ? minor_of(pong->api_version) : 0;
  if (newest < kLeastMinor || newest > kOurMinor) return ask_version();
  prefix_ = fmt::format("/v1.{}", newest);
  minor_ = newest;
  return {};
}

Answered<http::HttpHead> EngineCalls::ping() {
  constexpr base::Duration kTime = base::seconds(10);
  auto exchange = begin(request_for("GET", "/_ping", {}), kTime);
  if (!exchange) return std::unexpected(std::move(exchange).error());
  const auto head = waited<http::HttpHead>(
      [&](const http::Waiting& waiting) { return exchange->head(waiting); }, kTime);
  if (!head) return head;
  const auto rest = whole_body(*exchange, kTime);
  if (!rest) return std::unexpected(rest.error());
  if (head->status >= 300) return std::unexpected(EngineFailure{head->status, words_of(*rest)});
  return head;
}

Answered<> EngineCalls::ask_version() {
  auto version = call("GET", "/version", {}, base::seconds(10));
  if (!version) return version;
  if (!version->is_object())
    return std::unexpected(EngineFailure{0, "it is not a container engine"});
  const int newest = minor_of(text_field(*version, "ApiVersion"));
  const int oldest = minor_of(text_field(*version, "MinAPIVersion"));
  const int minor = std::min(newest, kOurMinor);
  if (minor < kLeastMinor || minor < oldest) {
    return std::unexpected(EngineFailure{
        0, fmt::format("it has versions 1.{} to 1.{} of the API, and 1.{} to 1.{} are supported",
                       oldest, newest, kLeastMinor, kOurMinor)});
  }
  prefix_ = fmt::format("/v1.{}", minor);
  minor_ = minor;
  return version;
}

// Waits return at a signal, and every few seconds if they have no timeout. The caller then waits
// again unless the call is cancelled.
template <class T>
Answered<T> EngineCalls::waited(
    const std::function<http::Transported<T>(const http::Waiting&)>& step,
    std::optional<base::Duration> at_most) {
  while (true) {
    auto done = step({at_most.value_or(kLook), interrupt_fd_});
    if (done) return *std::move(done);
    const Why why = done.error().kind;
    const bool goes_on = (why == Why::kInterrupted && !on_interrupt_()) ||
                         (why == Why::kTimedOut && !at_most && !(hopeless_ && hopeless_()));
    if (!goes_on) return std::unexpected(failure_of(done.error()));
  }
}

Answered<http::Exchange> EngineCalls::begin(http::HttpRequest request,
                                            std::optional<base::Duration> at_most) {
  request.target = prefix_ + request.target;
  return waited<http::Exchange>(
      [&](const http::Waiting& waiting) {
        return http::Exchange::begin(server_, request, waiting);
      },
      at_most.value_or(kUsualTime));
}

Answered<std::string> EngineCalls::whole_body(http::Exchange& exchange,
                                              std::optional<base::Duration> at_most) {
  const std::int64_t begun = os::boot_ms();
  std::string body;
  while (true) {
    auto part = waited<std::string>(
        [&](const http::Waiting& waiting) { return exchange.more(waiting); }, at_most);
    if (!part || part->empty()) return part ? Answered<std::string>(std::move(body)) : part;
    body += *part;
    if (body.size() > kMaxAnswer) {
      return std::unexpected(EngineFailure{0, "its answer is too long"});
    }
    if (at_most && os::boot_ms() - begun > kAnswerMs) {
      return std::unexpected(EngineFailure{0, "its answer does not end", true});
    }
  }
}

Answered<> EngineCalls::call(std::string_view method, std::string_view path, const Json& body,
                             std::optional<base::Duration> at_most) {
  auto exchange = begin(request_for(method, path, body), at_most);
  if (!exchange) return std::unexpected(std::move(exchange).error());
  const auto head = waited<http::HttpHead>(
      [&](const http::Waiting& waiting) { return exchange->head(waiting); }, at_most);
  if (!head) return std::unexpected(head.error());
  const auto rest = whole_body(*exchange, at_most);
  if (!rest) return std::unexpected(rest.error());
  if (head->status >= 300) return std::unexpected(EngineFailure{head->status, words_of(*rest)});
  Json json = Json::parse(*rest, nullptr, false);
  return json.is_discarded() ? Json(*rest) : json;
}

Answered<> EngineCalls::head_of(http::Exchange& exchange) {
  const auto head = waited<http::HttpHead>(
      [&](const http::Waiting& waiting) { return exchange.head(waiting); }, kUsualTime);
  if (!head) return std::unexpected(head.error());
  if (head->status < 300) return {};
  const auto rest = whole_body(exchange, kUsualTime);
  return std::unexpected(EngineFailure{head->status, rest ? words_of(*rest) : ""});
}

Answered<EngineCalls::Stream> EngineCalls::stream(std::string_view path, std::string header_lines) {
  http::HttpRequest request = request_for("POST", path, {});
  request.header_lines = std::move(header_lines);
  auto exchange = begin(std::move(request), kUsualTime);
  if (!exchange) return std::unexpected(std::move(exchange).error());
  if (auto head = head_of(*exchange); !head) return std::unexpected(std::move(head).error());
  return Stream(*std::move(exchange), *this);
}

Answered<http::RawStream> EngineCalls::hijack(std::string_view path, const Json& body) {
  http::HttpRequest request = request_for("POST", path, body);
  request.upgrade = "tcp";
  auto exchange = begin(std::move(request), kUsualTime);
  if (!exchange) return std::unexpected(std::move(exchange).error());
  if (auto head = head_of(*exchange); !head) return std::unexpected(std::move(head).error());
  auto raw = exchange->release();
  if (!raw) return std::unexpected(EngineFailure{0, std::move(raw.error().message)});
  return *std::move(raw);
}

Answered<std::string> EngineCalls::Stream::next() {
  return calls_->waited<std::string>(
      [&](const http::Waiting& waiting) { return exchange_.more(waiting); }, std::nullopt);
}

}  // namespace gpu_platform::execution
