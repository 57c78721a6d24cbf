#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "http/connection.h"
#include "os/descriptor.h"

// A small HTTP/1.1 client: one connection for each request, answers read whole or as they come.
// Blocking; each object belongs to one thread.

namespace gpu_platform::http {

struct HttpRequest {
  std::string_view method = "GET";
  std::string target;  // path and query, already percent-encoded
  std::string body;    // of content_type, or empty
  std::string accept = "application/json";
  std::string_view content_type = "application/json";
  std::string_view upgrade;  // the protocol that is wanted after the answer; empty: none
  std::string header_lines;  // further ones, each with its "\r\n"; secrets may stand there
};

struct HttpHead {
  int status = 0;
  std::string content_type;  // without parameters
  std::string location;      // where a redirect leads; it is never followed
  std::string api_version;   // of a container engine: the newest of its API
  bool is_podman = false;
};

// How long a server may take to accept a connection.
inline constexpr base::Duration kConnectTime = base::seconds(10);

// What a connection is after its last answer of HTTP.
struct RawStream {
  os::Descriptor socket;  // never blocks
  std::string early;      // bytes that came with the answer
};

// One request and its answer.
class Exchange {
 public:
  // Connects to the server and sends the request, with the server's token.
  static Transported<Exchange> begin(const Server& server, const HttpRequest& request,
                                     const Waiting& waiting);

  Exchange(Exchange&&) noexcept;
  Exchange& operator=(Exchange&&) noexcept;
  ~Exchange();

  const Server& server() const;
  Transported<HttpHead> head(const Waiting& waiting);
  // More of the body; empty: all of it was read. Call after head().
  Transported<std::string> more(const Waiting& waiting);
  // All that is left of the body.
  Transported<std::string> rest(const Waiting& waiting);
  // Ends HTTP: the rest of the connection is bytes both ways. Call after head(), once and last.
  // Only for a Unix socket.
  Transported<RawStream> release();

 private:
  struct State;
  explicit Exchange(std::unique_ptr<State> state);
  Transported<> receive(const Waiting& waiting);

  std::unique_ptr<State> state_;
};

// What an Authorization header says to this server; empty: there is none. A Unix socket gets none:
// the daemon sees the caller.
std::string authorization_for(const Server& server);

// Puts "key=value" at the end, encoded, with what separates it from what stands before.
void append_query(std::string& query, std::string_view key, std::string_view value);

}  // namespace gpu_platform::http
