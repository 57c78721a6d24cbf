#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "kubernetes/exec_plugin.h"
#include "kubernetes/kubeconfig.h"

// Requests to a Kubernetes API server, over libcurl's multi interface (HTTP/1.1: a
// connection for each that is under way). Ownership: one owner. Thread: all calls but wake() on the
// owner's thread; callbacks come from within poll() on that thread and may call the client again.
// Nothing here waits but poll().

namespace gpu_platform::kubernetes {

enum class Method : std::uint8_t { kGet, kPost, kPut, kPatch, kDelete };

// Which of the requests that wait (ClientOptions::max_in_flight) is sent next: of those with the
// first turn the one that came first.
enum class Turn : std::uint8_t {
  kAtOnce,   // a few that must not wait for thousands of others
  kNext,     // goes on with what has begun
  kInOrder,  // begins something
};

struct Request {
  Method method = Method::kGet;
  std::string path;          // with its query: "/api/v1/nodes?limit=500"
  std::string body;          // JSON; empty: none
  std::string content_type;  // of the body; empty: "application/json"
  Turn turn = Turn::kInOrder;
  // The answer needs only the metadata of an object. A server that cannot do that sends the whole
  // object.
  bool wants_metadata = false;
  // The timeout of the whole call from its first sending on, with retries; for streams: of silence.
  base::Duration timeout = base::seconds(30);
};

// The answer to a request, of any status. A request that is refused for load (429) is sent
// again after its Retry-After, at most a few times and within its timeout, before it is answered
// here; a 429 without Retry-After means something else (an eviction that a budget forbids) and is
// answered at once. A request that is refused with 401 is sent again once if another credential can
// be had.
struct Answer {
  int status = 0;       // HTTP; 0: there was none
  std::string body;     // as it came, at most ClientOptions::max_body bytes
  std::string failure;  // of status 0, in words: "connection refused"

  bool is_ok() const { return status >= 200 && status < 300; }
};
// What the server says is wrong: the `message` of a Status object, or the status and the beginning
// of the body. One printable line.
std::string error_message_of(const Answer& answer);

struct ClientOptions {
  std::string user_agent = "gpu-platform";
  std::uint32_t max_in_flight = 16;  // ordinary requests at once; further ones wait for their turn
  std::size_t max_body = 256u << 20;
  base::Duration plugin_time = base::seconds(30);  // that a plugin for credentials may take
  // If a call has waited for its timeout, and for at least this, and nothing came from the
  // server on any connection meanwhile, all connections are given up.
  base::Duration dead_after = base::seconds(5);
};

using StreamId = std::uint64_t;  // 0: none
using RequestId = std::uint64_t;

// What a stream tells.
struct StreamHandlers {
  // The server has accepted it (2xx); once, before any bytes.
  std::function<void()> on_open;
  // Bytes as they come.
  std::function<void(std::string_view bytes)> on_bytes;
  // The stream is over, by the server, the network or silence; never after close_stream().
  // `answer` has the status, and the body where the status is no success (on_bytes then got
  // nothing); status 0 where the network or silence ended it.
  std::function<void(const Answer& answer)> on_end;
};

class Client {
 public:
  // Errors name the key of the access that is wrong. No call is made yet.
  static base::Result<std::unique_ptr<Client>> make(ClusterAccess access,
                                                    ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // `done` is called once, unless the client is destroyed before.
  RequestId send(Request request, std::function<void(const Answer&)> done);
  // A long GET whose body is read as it comes (watch, logs that are followed).
  StreamId open_stream(Request request, StreamHandlers handlers);
  void close_stream(StreamId stream);  // an unknown one: nothing
  // `done` is not called any more; the server may have done what was asked. An unknown one:
  // nothing.
  void cancel(RequestId request);

  // Tells the credential that a request would carry now, for a connection that is not the client's;
  // an error if none can be had. `done` is called once, unless the client is destroyed before. That
  // the server refuses a credential is found out by the client's own requests only.
  void ask_credential(std::function<void(base::Result<Credential>)> done);

  // Carries transfers on and runs callbacks; returns when some have run, when wake() was called, or
  // after `timeout`. In a burst of news it collects some for up to 5 ms, and does not hear wake()
  // meanwhile.
  void poll(base::Duration timeout);
  void wake();  // any thread
  // Requests that wait or are under way.
  std::size_t pending() const;

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpu_platform::kubernetes
