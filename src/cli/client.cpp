#include "cli/client.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/convert/problem.h"
#include "base/parse.h"
#include "cli/exit_code.h"

namespace gpu_platform::cli {

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

Failure failure_of(const TransportError& error) {
  switch (error.kind) {
    case TransportError::Kind::kNoDaemon:
      return {Kind::kNoDaemon, error.message, {}, own_document("No daemon", error.message)};
    case TransportError::Kind::kBroken:
    case TransportError::Kind::kTimedOut:
      return {Kind::kBroken, error.message, {}, own_document("Connection lost", error.message)};
    case TransportError::Kind::kInterrupted:
      return {Kind::kInterrupted, "interrupted", {}, {}};
    case TransportError::Kind::kMalformed:
      break;
  }
  return {Kind::kBadAnswer, error.message, {}, own_document("Not the daemon", error.message)};
}

bool is_success(int status) {
  return status >= 200 && status < 300;
}

Called<std::string> answer_of(Exchange exchange, const Waiting& waiting) {
  const auto head = exchange.head(waiting);
  if (!head) return std::unexpected(failure_of(head.error()));
  auto body = exchange.rest(waiting);
  if (!body) return std::unexpected(failure_of(body.error()));
  if (!is_success(head->status)) return std::unexpected(failure_of_answer(head->status, *body));
  return std::move(*body);
}

}  // namespace

Failure failure_of_answer(int status, const std::string& body) {
  base::Error error = api::to_error(status, body);
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

int report(Console& console, const Failure& failure, bool json) {
  if (failure.kind == Kind::kInterrupted) return kInterrupted;
  if (json && !failure.document.empty()) {
    console.err(failure.document.ends_with('\n') ? failure.document : failure.document + "\n");
  } else {
    // The daemon's sentences name the field themselves where that reads well.
    const bool names_field =
        failure.field.empty() || failure.message.find(failure.field) != std::string::npos;
    console.error(names_field ? failure.message
                              : fmt::format("{}: {}", failure.field, failure.message));
  }
  return exit_code_of(failure);
}

Called<std::optional<ServerEvent>> EventStream::next(int interrupt_fd) {
  while (true) {
    if (auto event = reader_.next()) return std::optional(std::move(*event));
    const auto bytes = exchange_.more({std::nullopt, interrupt_fd});
    if (!bytes) return std::unexpected(failure_of(bytes.error()));
    if (bytes->empty()) return std::optional<ServerEvent>();
    reader_.feed(*bytes);
  }
}

std::string Client::places() const {
  return fmt::format("unix:{}", fmt::join(paths_, ", unix:"));
}

// Connects to the first place where something listens. Only "nothing listens" leads on to the next
// one: a daemon that answers badly must not be passed over in favour of another.
template <class Result, class Attempt>
Called<Result> Client::at_first_place(Attempt&& attempt) {
  std::string reasons;
  for (const std::string& path : paths_) {
    auto result = attempt(path);
    if (result) return std::move(*result);
    if (result.error().kind != TransportError::Kind::kNoDaemon) {
      return std::unexpected(failure_of(result.error()));
    }
    reasons += (reasons.empty() ? "" : "; ") + result.error().message;
  }
  const std::string message = fmt::format(
      "no daemon answers ({}); start one with 'gpu-platform serve', or say where it is with "
      "--server unix:PATH",
      reasons);
  return std::unexpected(Failure{Kind::kNoDaemon, message, {}, own_document("No daemon", message)});
}

Called<Exchange> Client::begin(const HttpRequest& request) {
  return at_first_place<Exchange>(
      [&](const std::string& path) { return Exchange::begin(path, request); });
}

Called<int> Client::connect() {
  return at_first_place<int>(connect_local);
}

Called<std::string> Client::call(std::string_view method, const std::string& target,
                                 const std::string& body) {
  auto exchange = begin({method, target, body});
  if (!exchange) return std::unexpected(std::move(exchange).error());
  return answer_of(std::move(*exchange), {kAnswerTime, -1});
}

Called<std::string> Client::get_slow(const std::string& target, base::Duration longer,
                                     int interrupt_fd) {
  return call_slow({"GET", target, {}}, longer, interrupt_fd);
}

Called<std::string> Client::post_slow(const std::string& target, const std::string& body,
                                      base::Duration longer, int interrupt_fd) {
  return call_slow({"POST", target, body}, longer, interrupt_fd);
}

Called<std::string> Client::call_slow(const HttpRequest& request, base::Duration longer,
                                      int interrupt_fd) {
  auto exchange = begin(request);
  if (!exchange) return std::unexpected(std::move(exchange).error());
  return answer_of(std::move(*exchange), {kAnswerTime + longer, interrupt_fd});
}

Called<EventStream> Client::stream(const std::string& target) {
  auto exchange = begin({"GET", target, {}, "text/event-stream"});
  if (!exchange) return std::unexpected(std::move(exchange).error());
  const auto head = exchange->head({kAnswerTime, -1});
  if (!head) return std::unexpected(failure_of(head.error()));
  if (!is_success(head->status)) {
    auto body = exchange->rest({kAnswerTime, -1});
    if (!body) return std::unexpected(failure_of(body.error()));
    return std::unexpected(failure_of_answer(head->status, *body));
  }
  return EventStream(std::move(*exchange));
}

base::Result<std::vector<std::string>> server_paths(const std::optional<std::string>& option,
                                                    const Surroundings& surroundings) {
  const std::optional<std::string> given =
      option.has_value() ? option : variable(surroundings, "GPU_PLATFORM_SERVER");
  if (given.has_value()) {
    constexpr std::string_view kScheme = "unix:";
    if (!given->starts_with(kScheme) || given->size() == kScheme.size()) {
      return base::invalid(option.has_value() ? "--server" : "GPU_PLATFORM_SERVER",
                           fmt::format("'{}' is not a server: write unix:PATH", *given));
    }
    return std::vector<std::string>{given->substr(kScheme.size())};
  }
  std::vector<std::string> paths;
  if (const auto runtime = variable(surroundings, "XDG_RUNTIME_DIR")) {
    paths.push_back(*runtime + "/gpu-platform.sock");
  } else if (surroundings.uid != 0) {
    paths.push_back(fmt::format("/run/user/{}/gpu-platform.sock", surroundings.uid));
  }
  paths.emplace_back("/run/gpu-platform/gpu-platform.sock");
  return paths;
}

bool Patience::wait(const Failure& failure, int interrupt_fd) {
  if (waited_ >= at_most_) return false;
  if (!told_) {
    console_.note(fmt::format("{}; trying again for {}", failure.message, base::written(at_most_)));
    told_ = true;
  }
  console_.surroundings().pause(next_, interrupt_fd);
  waited_ += next_;
  next_ = std::min(next_ * 2, kLongestPause);
  return true;
}

void Patience::reset() {
  if (told_) console_.note("the daemon is back");
  waited_ = base::Duration();
  next_ = base::milliseconds(100);
  told_ = false;
}

}  // namespace gpu_platform::cli
