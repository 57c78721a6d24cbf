#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "http/http.h"

// The calls of the Docker Engine API that a job's container needs. Docker and Podman answer them.
// Blocking; one thread.

namespace gpu_platform::execution {

struct EngineFailure {
  int status = 0;        // of HTTP; 0: no answer
  std::string message;   // the engine's words, or why there are none
  bool is_away = false;  // nothing answered, which may pass
};
// What an answer must be shorter than, and a line of a stream.
inline constexpr std::size_t kMaxAnswer = std::size_t{8} << 20;

template <class T = nlohmann::json>
using Answered = std::expected<T, EngineFailure>;

class EngineCalls {
 public:
  // `interrupt_fd` becomes readable when a signal waits; `on_interrupt` takes it and returns
  // whether to give up the call that waits.
  EngineCalls(std::string socket, int interrupt_fd, std::function<bool()> on_interrupt);

  // Asked every few seconds of a wait that has no end of its own: returns whether it is over.
  void set_hopeless(std::function<bool()> hopeless) { hopeless_ = std::move(hopeless); }

  // Finds the version of the API that both sides speak. Call it first.
  Answered<> open();
  int api_minor() const { return minor_; }  // of that version, "1.41": 41
  bool is_podman() const { return is_podman_; }

  Answered<> get(std::string_view path) { return call("GET", path, {}, kUsualTime); }
  // With what body to send; without `at_most` it waits for the answer as long as it takes.
  Answered<> post(std::string_view path, const nlohmann::json& body = {}) {
    return call("POST", path, body, kUsualTime);
  }
  // Calls that are optional, or that have a replacement if they fail.
  Answered<> get_brief(std::string_view path) { return call("GET", path, {}, base::seconds(3)); }
  Answered<> post_brief(std::string_view path) { return call("POST", path, {}, base::seconds(3)); }
  Answered<> post_slow(std::string_view path) { return call("POST", path, {}, std::nullopt); }
  Answered<> remove(std::string_view path) { return call("DELETE", path, {}, kUsualTime); }

  // A stream that the engine begins with the answer to a POST.
  class Stream {
   public:
    // Waits for the next part; empty: the stream has ended.
    Answered<std::string> next();

   private:
    friend class EngineCalls;
    Stream(http::Exchange exchange, EngineCalls& calls)
        : exchange_(std::move(exchange)), calls_(&calls) {}
    http::Exchange exchange_;
    EngineCalls* calls_;
  };
  // `header_lines`: further ones of the request, each with its "\r\n".
  Answered<Stream> stream(std::string_view path, std::string header_lines = {});
  // A POST after which the connection is the container's own, bytes both ways.
  Answered<http::RawStream> hijack(std::string_view path, const nlohmann::json& body = {});

 private:
  static constexpr base::Duration kUsualTime = base::seconds(60);

  // The target is a path without the version.
  Answered<http::Exchange> begin(http::HttpRequest request, std::optional<base::Duration> at_most);
  // The head of an answer that is no refusal.
  Answered<> head_of(http::Exchange& exchange);
  Answered<std::string> whole_body(http::Exchange& exchange, std::optional<base::Duration> at_most);
  Answered<http::HttpHead> ping();
  Answered<> ask_version();
  Answered<> call(std::string_view method, std::string_view path, const nlohmann::json& body,
                  std::optional<base::Duration> at_most);
  template <class T>
  Answered<T> waited(const std::function<http::Transported<T>(const http::Waiting&)>& step,
                     std::optional<base::Duration> at_most);

  http::Server server_;
  int interrupt_fd_;
  std::function<bool()> on_interrupt_;
  std::function<bool()> hopeless_;  // may be null
  std::string prefix_;              // "/v1.41"
  int minor_ = 0;
  bool is_podman_ = false;
};

}  // namespace gpu_platform::execution
