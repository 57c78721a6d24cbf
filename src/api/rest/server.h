#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/core_access.h"
#include "api/event_hub.h"
#include "api/identity/authenticator.h"
#include "api/rest/budget.h"
#include "api/rest/notable_call.h"
#include "api/rest/session_limits.h"
#include "base/result.h"
#include "model/user_range.h"

namespace gpu_platform::api {

struct ServerOptions {
  std::string socket_path;
  std::string version;  // of the program
  // The threads that serve all users; one more keeps privileged users apart from the others.
  unsigned io_threads = 1;
  BudgetLimits budgets;
  std::size_t page_bytes = std::size_t{4} << 20;  // of a list
  // The users that are held to the total of each budget alone. Null: root.
  std::function<bool(std::uint32_t uid)> is_privileged;
  std::string subordinate_ids = "/etc/subuid";
  SessionLimits limits;
  std::chrono::milliseconds stop_grace{2'000};
  std::optional<std::uint32_t> only_uid = {};  // see CallOptions
  model::UserRange users = {};                 // see CallOptions
  // Finds the users behind the connections of the listener; outlives the server. Null: all of them
  // are refused.
  const Authenticator* authenticator = nullptr;
  std::size_t arrivals = 128;  // connections of the listener whose user is not known, at once
  // Takes one line for the administrator, with the user who caused it, if there is one. It is
  // called from the server's threads. Null: no lines.
  std::function<void(std::optional<std::uint32_t> user, const std::string& line)> warn;
  // Takes each call that was refused or took long, for the log, as `warn` does.
  std::function<void(const Peer&, const NotableCall&)> notable = {};
};

// REST over HTTP/1.1 on a Unix socket. The socket's peer credentials name the caller; callers from
// other machines come through the listener with a credential. The core's access rules say what each
// of them may do.
//
// Runs on threads of its own. `core`'s objects and `hub` outlive the server; `hub` must be told of
// every publication after the snapshot source shows it.
class Server {
 public:
  // The socket's path appears when everything else is in place: call it when the program is ready.
  static base::Result<std::unique_ptr<Server>> start(ServerOptions options, CoreAccess core,
                                                     EventHub& hub);
  ~Server();  // stops

  // Removes the path, takes no new connection, lets requests under way be answered (up to the grace
  // time), ends streams, and joins the threads. The core must still be answering commands.
  void stop();

  // Serves the connection `descriptor`, a stream socket, to the user behind the credential. If the
  // credential is refused, the first request is answered with 401, 429 or 503, and the connection
  // ends. Beyond `arrivals` that answer comes at once. Owns the descriptor. Safe from any thread
  // until stop().
  void adopt(int descriptor, Credential credential);

  struct Figures {
    std::uint64_t connections = 0;  // open now
    std::uint64_t requests = 0;     // since the start
  };
  Figures figures() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpu_platform::api
