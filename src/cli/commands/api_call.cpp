#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/letters.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/submission/text_file.h"

// One call of the REST interface, for scripts.

namespace gpu_platform::cli {

namespace {

constexpr std::array<std::string_view, 4> kMethods = {"GET", "POST", "PATCH", "DELETE"};
// The daemon takes less; beyond it there is no use in reading on.
constexpr std::size_t kMaxBody = 64UL << 20;

base::Result<std::string> method_of(const std::string& word) {
  std::string method = base::to_upper(word);
  if (std::ranges::find(kMethods, method) != kMethods.end()) return method;
  return base::invalid("METHOD",
                       fmt::format("'{}' is not one of {}", word, fmt::join(kMethods, ", ")));
}

// A target that could end the request's line would be another request.
base::Result<std::string> target_of(const std::string& path) {
  if (!path.starts_with('/')) {
    return base::invalid("PATH", fmt::format("'{}' does not begin with '/': write /v1/jobs", path));
  }
  const auto is_plain = [](char c) { return c > ' ' && c < 0x7f && c != '#'; };
  if (!std::ranges::all_of(path, is_plain)) {
    return base::invalid("PATH", "spaces, '#' and characters beyond ASCII are written as %XX");
  }
  return path;
}

// The text itself, or what @FILE or - stands for.
base::Result<std::string> body_of(const std::string& data,
                                  const ProcessEnvironment& process_environment) {
  if (data != "-" && !data.starts_with('@')) return data;
  const std::string file = data == "-" ? data : data.substr(1);
  auto text = read_text_file(process_environment, file, kMaxBody);
  if (!text) return base::invalid("--data", fmt::format("{}: {}", file, text.error().message));
  return text;
}

base::Result<http::HttpRequest> request_of(const std::vector<std::string>& words,
                                           const std::optional<std::string>& data,
                                           const ProcessEnvironment& process_environment,
                                           std::string& method) {
  TRY_ASSIGN(method, method_of(words.size() == 2 ? words[0] : data ? "POST" : "GET"));
  TRY_ASSIGN(std::string target, target_of(words.back()));
  http::HttpRequest request{
      method, std::move(target), {}, "application/json, text/event-stream, */*"};
  if (data) {
    TRY_ASSIGN(request.body, body_of(*data, process_environment));
  }
  return request;
}

// Prints the answer as it comes: a stream of events has no end of its own.
int print_answer(Console& console, http::Exchange exchange) {
  const http::Waiting for_ever{std::nullopt, -1};
  const auto head = exchange.head(for_ever);
  if (!head) return report(console, client::failure_of(head.error()), true);
  if (head->status < 200 || head->status > 299) {
    const auto body = exchange.rest(for_ever);
    if (!body) return report(console, client::failure_of(body.error()), true);
    return report(console, client::failure_of_answer(exchange.server(), *head, *body), true);
  }
  char last = '\n';
  while (true) {
    const auto piece = exchange.more(for_ever);
    if (!piece) return report(console, client::failure_of(piece.error()), true);
    if (piece->empty()) break;
    console.out(*piece);
    if (console.out_failed()) return kFailure;
    last = piece->back();
  }
  if (last != '\n') console.out("\n");
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace

int run_api(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> words;
  std::optional<std::string> data;
  Arguments arguments(text);
  arguments
      .words("[METHOD] PATH", words, 1, 2, "GET, POST, PATCH or DELETE, and a path of docs/api.md")
      .option("--data,-d", data, "JSON",
              "body of the request: JSON, @FILE, or - for stdin; it makes the method POST");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  std::string method;
  const auto request = request_of(words, data, console.process_environment(), method);
  if (!request) {
    return usage_error(
        console, fmt::format("{}: {}", request.error().field, request.error().message), text.name);
  }
  auto exchange = client->exchange(*request);
  if (!exchange) return report(console, exchange.error(), true);
  return print_answer(console, std::move(*exchange));
}

}  // namespace gpu_platform::cli
