#include "execution/container/engine_calls.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

constexpr int kOurMinor = 50;    // of API version 1
constexpr int kLeastMinor = 40;  // below it the calls differ
constexpr std::size_t kMaxWords = 300;

// "1.41" -> 41; 0: it is no version of API 1.
int minor_of(const Json& version) {
  if (!version.is_string()) return 0;
  const std::string text = version.get<std::string>();
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

}  // namespace

EngineCalls::EngineCalls(std::string socket, int interrupt_fd, std::function<bool()> on_interrupt)
    : interrupt_fd_(interrupt_fd), on_interrupt_(std::move(on_interrupt)) {
  server_.path = std::move(socket);
}

Answered<> EngineCalls::open() {
  auto version = call("GET", "/version", {}, base::seconds(10));
  if (!version) return version;
  if (!version->is_object()) return std::unexpected(EngineFailure{0, "it is no container engine"});
  const int newest = minor_of(version->value("ApiVersion", Json()));
  const int oldest = minor_of(version->value("MinAPIVersion", Json()));
  const int minor = std::min(newest, kOurMinor);
  if (minor < kLeastMinor || minor < oldest) {
    return std::unexpected(EngineFailure{
        0, fmt::format("it speaks versions 1.{} to 1.{} of the API, and 1.{} to 1.{} are known",
                       oldest, newest, kLeastMinor, kOurMinor)});
  }
  prefix_ = fmt::format("/v1.{}", minor);
  minor_ = minor;
  return version;
}

// A signal ends a wait; what waited goes on unless it is to be given up.
template <class T>
Answered<T> EngineCalls::waited(const std::function<cli::Transported<T>(const cli::Waiting&)>& step,
                                std::optional<base::Duration> at_most) {
  while (true) {
    auto done = step({at_most, interrupt_fd_});
    if (done) return *std::move(done);
    const bool is_signal = done.error().kind == cli::TransportError::Kind::kInterrupted;
    if (!is_signal || on_interrupt_()) {
      return std::unexpected(EngineFailure{0, std::move(done.error().message)});
    }
  }
}

Answered<cli::Exchange> EngineCalls::begin(std::string_view method, std::string_view path,
                                           const Json& body, std::optional<base::Duration> at_most,
                                           std::string_view upgrade) {
  cli::HttpRequest request;
  request.method = method;
  request.target = prefix_ + std::string(path);
  request.upgrade = upgrade;
  if (!body.is_null()) request.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  return waited<cli::Exchange>(
      [&](const cli::Waiting& waiting) { return cli::Exchange::begin(server_, request, waiting); },
      at_most);
}

Answered<> EngineCalls::call(std::string_view method, std::string_view path, const Json& body,
                             std::optional<base::Duration> at_most) {
  auto exchange = begin(method, path, body, at_most);
  if (!exchange) return std::unexpected(std::move(exchange).error());
  const auto head = waited<cli::HttpHead>(
      [&](const cli::Waiting& waiting) { return exchange->head(waiting); }, at_most);
  if (!head) return std::unexpected(head.error());
  const auto rest = waited<std::string>(
      [&](const cli::Waiting& waiting) { return exchange->rest(waiting); }, at_most);
  if (!rest) return std::unexpected(rest.error());
  if (head->status >= 300) return std::unexpected(EngineFailure{head->status, words_of(*rest)});
  Json json = Json::parse(*rest, nullptr, false);
  return json.is_discarded() ? Json(*rest) : json;
}

Answered<> EngineCalls::head_of(cli::Exchange& exchange) {
  const auto head = waited<cli::HttpHead>(
      [&](const cli::Waiting& waiting) { return exchange.head(waiting); }, kUsualTime);
  if (!head) return std::unexpected(head.error());
  if (head->status < 300) return {};
  const auto rest = waited<std::string>(
      [&](const cli::Waiting& waiting) { return exchange.rest(waiting); }, kUsualTime);
  return std::unexpected(EngineFailure{head->status, rest ? words_of(*rest) : ""});
}

Answered<cli::RawStream> EngineCalls::hijack(std::string_view path, const Json& body) {
  auto exchange = begin("POST", path, body, kUsualTime, "tcp");
  if (!exchange) return std::unexpected(std::move(exchange).error());
  if (auto head = head_of(*exchange); !head) return std::unexpected(std::move(head).error());
  auto raw = exchange->release();
  if (!raw) return std::unexpected(EngineFailure{0, std::move(raw.error().message)});
  return *std::move(raw);
}

}  // namespace gpu_platform::execution
