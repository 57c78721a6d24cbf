#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

// A small HTTP/1.1 client over a Unix socket: one connection for each request, answers read whole
// or as they come. Blocking; each object belongs to one thread.

namespace gpu_platform::cli {

struct TransportError {
  enum class Kind {
    kNoDaemon,     // nothing listens there: the request was not sent
    kBroken,       // the connection ended early: whether the request was carried out is not known
    kTimedOut,     // no answer in time: likewise
    kInterrupted,  // the interrupt descriptor became readable; the call may be repeated
    kMalformed,    // what came is not HTTP
  };
  Kind kind = Kind::kNoDaemon;
  std::string message;
};

template <class T = void>
using Transported = std::expected<T, TransportError>;

struct HttpRequest {
  std::string_view method = "GET";
  std::string target;  // path and query, already percent-encoded
  std::string body;    // JSON, or empty
  std::string accept = "application/json";
};

struct HttpHead {
  int status = 0;
  std::string content_type;  // without parameters
};

// How long to wait for bytes, and what may end the wait early.
struct Waiting {
  std::optional<base::Duration> at_most;  // between two arrivals; absent: for ever
  int interrupt_fd = -1;                  // readable = stop waiting; never read from here
};

// Connects to the socket at `path`; the caller closes it.
Transported<int> connect_local(const std::string& path);

// One request and its answer.
class Exchange {
 public:
  // Connects to the socket at `path` and sends the request.
  static Transported<Exchange> begin(const std::string& path, const HttpRequest& request);

  Exchange(Exchange&&) noexcept;
  Exchange& operator=(Exchange&&) noexcept;
  ~Exchange();

  Transported<HttpHead> head(const Waiting& waiting);
  // More of the body; empty: all of it was read. Call after head().
  Transported<std::string> more(const Waiting& waiting);
  // All that is left of the body.
  Transported<std::string> rest(const Waiting& waiting);

 private:
  struct State;
  explicit Exchange(std::unique_ptr<State> state);
  Transported<> receive(const Waiting& waiting);

  std::unique_ptr<State> state_;
};

// `text` as one path segment or query value.
std::string percent_encoded(std::string_view text);
// Puts "key=value" at the end, encoded, with what separates it from what stands before.
void append_query(std::string& query, std::string_view key, std::string_view value);

}  // namespace gpu_platform::cli
