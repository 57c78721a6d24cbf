#include "client/client.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/convert/problem.h"
#include "base/parse.h"
#include "client/exit_code.h"

namespace gpu_platform::client {

namespace {

using Json = nlohmann::ordered_json;
using Kind = Failure::Kind;

// A daemon that is alive answers ordinary calls in milliseconds; after this it counts as hung.
constexpr base::Duration kAnswerTime = base::seconds(60);
constexpr base::Duration kLongestPause = base::seconds(2);

std::string own_document(std::string_view title, std::string_view detail) {
  Json document;
  document["type"] = "about:blank";
  document["title"] = title;
  document["status"] = nullptr;
  document["detail"] = detail;
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_success(int status) {
  return status >= 200 && status < 300;
}

Called<std::string> answer_of(http::Exchange exchange, const http::Waiting& waiting) {
  const auto head = exchange.head(waiting);
  if (!head) return std::unexpected(failure_of(head.error()));
  auto body = exchange.rest(waiting);
  if (!body) return std::unexpected(failure_of(body.error()));
  if (!is_success(head->status)) {
    return std::unexpected(failure_of_answer(exchange.server(), *head, *body));
  }
  return std::move(*body);
}

}  // namespace

Failure failure_of(const http::TransportError& error) {
  switch (error.kind) {
    case http::TransportError::Kind::kNoDaemon:
      return {Kind::kNoDaemon, error.message, {}, own_document("No daemon", error.message)};
    case http::TransportError::Kind::kBroken:
    case http::TransportError::Kind::kTimedOut:
      return {Kind::kBroken, error.message, {}, own_document("Connection lost", error.message)};
    case http::TransportError::Kind::kInterrupted:
      return interrupted();
    case http::TransportError::Kind::kUntrusted:
      return {Kind::kBadAnswer, error.message, {}, own_document("Not trusted", error.message)};
    case http::TransportError::Kind::kMalformed:
      break;
  }
  return {Kind::kBadAnswer, error.message, {}, own_document("Not the daemon", error.message)};
}

Failure interrupted() {
  return {Kind::kInterrupted, "interrupted", {}, {}};
}

Failure bad_answer(std::string_view what) {
  return {Kind::kBadAnswer, fmt::format("the daemon's answer makes no sense: {}", what), {}, {}};
}

Failure failure_of_answer(const http::Server& server, const http::HttpHead& head,
                          const std::string& body) {
  // Followed, a redirect would take the token elsewhere.
  if (head.status >= 300 && head.status < 400) {
    const std::string message = fmt::format(
        "{} answers with {} and points to '{}'; redirects are not followed: give the daemon's own "
        "address",
        server.text(), head.status, head.location);
    return {Kind::kBadAnswer, message, {}, own_document("Redirect", message)};
  }
  base::Error error = api::to_error(head.status, body);
  const bool is_unknown = error.code == base::ErrorCode::kUnauthenticated && server.is_network();
  if (is_unknown) {
    error.message += fmt::format("; log in with 'gpu-platform login {}'", server.text());
  }
  Failure failure{Kind::kProblem, std::move(error.message), std::move(error.field), body,
                  error.code};
  if (!Json::parse(body, nullptr, false).is_object()) {
    failure.document = own_document("Unexpected answer", failure.message);
  }
  return failure;
}

bool Failure::is_passing() const {
  return kind == Kind::kNoDaemon || kind == Kind::kBroken ||
         (kind == Kind::kProblem && code == base::ErrorCode::kUnavailable);
}

std::optional<AboutField> about_field(std::string_view message, std::string_view field) {
  if (field.empty() || !message.starts_with(field)) return std::nullopt;
  message.remove_prefix(field.size());
  const std::size_t colon = message.find(": ");
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view value = message.substr(0, colon);
  if (!value.empty()) {
    if (value.front() != ' ') return std::nullopt;
    value.remove_prefix(1);
    // A sentence may begin with the word: "user ann has 5 jobs waiting".
    const bool is_number = !value.empty() && value.front() >= '0' && value.front() <= '9';
    if (!is_number && value.find(' ') != std::string_view::npos) return std::nullopt;
  }
  return AboutField{std::string(value), std::string(message.substr(colon + 2))};
}

std::string told_of_option(std::string_view option, const AboutField& about) {
  return fmt::format("{}{}{}: {}", option, about.value.empty() ? "" : " ", about.value,
                     about.sentence);
}

int exit_code_of(const Failure& failure) {
  switch (failure.kind) {
    case Kind::kNoDaemon:
      return kNoDaemon;
    case Kind::kInterrupted:
      return kInterrupted;
    case Kind::kProblem:
      return api::exit_code(failure.code);
    case Kind::kBroken:
    case Kind::kBadAnswer:
      break;
  }
  return kFailure;
}

namespace {

// What the words of a command name without an option: a sentence about it reads well alone.
bool is_named_by_word(std::string_view field) {
  constexpr std::array<std::string_view, 9> kWords = {
      "id", "ids", "name", "node", "gpu", "gpu_id", "token", "add_members", "remove_members"};
  return std::ranges::find(kWords, field) != kWords.end();
}

// The daemon's sentence about a field of the request, in the words of the command line: "--team:
// there is no team 'x'" for "teams[0]: there is no team 'x'".
std::string as_typed(const Console& console, const Failure& failure) {
  const std::string& field = failure.field;
  if (field.empty()) return failure.message;
  const std::string option = console.option_of(field);
  if (const auto about = about_field(failure.message, field)) {
    if (!option.empty()) return told_of_option(option, *about);
    return is_named_by_word(field) && about->value.empty() ? about->sentence : failure.message;
  }
  // Sentences name the field themselves where that reads well.
  const bool names_field =
      is_named_by_word(field) || failure.message.find(field) != std::string::npos;
  if (names_field) return failure.message;
  return fmt::format("{}: {}", option.empty() ? field : option, failure.message);
}

}  // namespace

int report(Console& console, const Failure& failure, bool json) {
  if (failure.kind == Kind::kInterrupted) return kInterrupted;
  if (json && !failure.document.empty()) {
    console.err(failure.document.ends_with('\n') ? failure.document : failure.document + "\n");
  } else {
    console.error(as_typed(console, failure));
  }
  return exit_code_of(failure);
}

Called<std::optional<api::ServerEvent>> EventStream::next(int interrupt_fd) {
  while (true) {
    if (auto event = reader_.next()) return std::optional(std::move(*event));
    const auto bytes = exchange_.more({std::nullopt, interrupt_fd});
    if (!bytes) return std::unexpected(failure_of(bytes.error()));
    if (bytes->empty()) return std::optional<api::ServerEvent>();
    reader_.feed(*bytes);
  }
}

Called<std::vector<api::ServerEvent>> EventStream::ready() {
  std::vector<api::ServerEvent> events;
  while (true) {
    while (auto event = reader_.next()) events.push_back(std::move(*event));
    // One read at a time, so that a fast stream does not keep the caller.
    if (!events.empty()) return events;
    const auto bytes = exchange_.more({base::Duration(), -1});
    if (!bytes && bytes.error().kind == http::TransportError::Kind::kTimedOut) return events;
    if (!bytes) return std::unexpected(failure_of(bytes.error()));
    if (bytes->empty()) {
      return std::unexpected(
          failure_of({http::TransportError::Kind::kBroken, "the daemon ended the stream"}));
    }
    reader_.feed(*bytes);
  }
}

// A port that speaks TLS ends a connection that does not, or answers what is no HTTP.
template <class Result>
Called<Result> with_tls_hint(Called<Result> result, const http::Server& server) {
  const bool is_puzzling =
      !result && (result.error().kind == Kind::kBroken || result.error().kind == Kind::kBadAnswer);
  if (is_puzzling && server.kind == http::Server::Kind::kPlain) {
    result.error().message += "; if this port uses TLS, write https:// instead of http://";
  }
  return result;
}

// Connects to the first place where something listens. Only "nothing listens" leads on to the next
// one: a daemon that answers badly must not be passed over in favour of another.
template <class Result, class Attempt>
Called<Result> Client::at_first_place(Attempt&& attempt) {
  std::string reasons;
  bool is_refused = false;
  for (const http::Server& server : servers_) {
    auto result = attempt(server);
    if (result) {
      answered_ = server.text();
      return std::move(*result);
    }
    if (result.error().kind != http::TransportError::Kind::kNoDaemon) {
      return std::unexpected(failure_of(result.error()));
    }
    is_refused = is_refused || result.error().is_refused;
    reasons += (reasons.empty() ? "" : "; ") + result.error().message;
  }
  const bool is_network = !servers_.empty() && servers_.front().is_network();
  const std::string message =
      fmt::format("no daemon answers ({}){}", reasons,
                  is_network ? ""
                             : "; start one with 'gpu-platform serve' (--emulate dgx-h100 on a "
                               "machine without GPUs), use one on another machine with "
                               "'gpu-platform login https://HOST:PORT', or name its socket with "
                               "--server unix:PATH");
  Failure failure{Kind::kNoDaemon, message, {}, own_document("No daemon", message)};
  failure.is_refused = is_refused;
  return std::unexpected(std::move(failure));
}

Called<http::Exchange> Client::begin(const http::HttpRequest& request,
                                     const http::Waiting& waiting) {
  return at_first_place<http::Exchange>(
      [&](const http::Server& server) { return http::Exchange::begin(server, request, waiting); });
}

Called<http::Exchange> Client::exchange(const http::HttpRequest& request) {
  return begin(request, {kAnswerTime, -1});
}

Called<http::Connection> Client::connect() {
  return at_first_place<http::Connection>([](const http::Server& server) {
    return http::Connection::open(server, {http::kConnectTime, -1});
  });
}

Called<std::string> Client::call(std::string_view method, const std::string& target,
                                 const std::string& body) {
  const http::Waiting waiting{kAnswerTime, -1};
  auto exchange = begin({method, target, body}, waiting);
  if (!exchange) return std::unexpected(std::move(exchange).error());
  const http::Server server = exchange->server();
  return with_tls_hint(answer_of(std::move(*exchange), waiting), server);
}

Called<std::string> Client::get_slow(const std::string& target, base::Duration longer,
                                     int interrupt_fd) {
  return call_slow({"GET", target, {}}, longer, interrupt_fd);
}

Called<std::string> Client::post_slow(const std::string& target, const std::string& body,
                                      base::Duration longer, int interrupt_fd) {
  return call_slow({"POST", target, body}, longer, interrupt_fd);
}

Called<std::string> Client::call_slow(const http::HttpRequest& request, base::Duration longer,
                                      int interrupt_fd) {
  auto exchange = begin(request, {kAnswerTime, interrupt_fd});
  if (!exchange) return std::unexpected(std::move(exchange).error());
  const http::Server server = exchange->server();
  return with_tls_hint(answer_of(std::move(*exchange), {kAnswerTime + longer, interrupt_fd}),
                       server);
}

Called<EventStream> Client::stream(const std::string& target) {
  const http::Waiting waiting{kAnswerTime, -1};
  auto exchange = begin({"GET", target, {}, "text/event-stream"}, waiting);
  if (!exchange) return std::unexpected(std::move(exchange).error());
  const auto head = exchange->head(waiting);
  if (!head) return std::unexpected(failure_of(head.error()));
  if (!is_success(head->status)) {
    auto body = exchange->rest(waiting);
    if (!body) return std::unexpected(failure_of(body.error()));
    return std::unexpected(failure_of_answer(exchange->server(), *head, *body));
  }
  return EventStream(std::move(*exchange));
}

bool BackOff::wait(const Failure& failure, int interrupt_fd) {
  if (waited_ >= timeout_) return false;
  if (!told_) {
    console_.note(fmt::format("{}; trying again for {}", failure.message, base::written(timeout_)));
    told_ = true;
  }
  console_.process_environment().pause(next_, interrupt_fd);
  waited_ += next_;
  next_ = std::min(next_ * 2, kLongestPause);
  return true;
}

void BackOff::reset() {
  if (told_) console_.note("the daemon is back");
  waited_ = base::Duration();
  next_ = base::milliseconds(100);
  told_ = false;
}

}  // namespace gpu_platform::client
