#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "listener/link.h"
#include "listener/rest/connection.h"
#include "os/descriptor.h"

namespace gpu_platform::listener {

struct FrontOptions {
  Settings settings;
  RequestLimits limits;
  Times times;
  // Takes one line for the daemon's log; called from any of the front's threads. Null: no lines.
  std::function<void(const std::string& line)> warn;
};

// REST for clients of other machines: takes connections on its sockets, and answers each on one of
// its threads.
class Front {
 public:
  // `upstream` and `tls` outlive the front.
  Front(FrontOptions options, Upstream& upstream, const Tls& tls);
  ~Front();  // stops at once
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  // Before start(): `socket` listens.
  base::Status listen(os::Descriptor socket, const Listen& what);
  // Begins to answer, on threads of its own.
  void start();
  // Takes no more, and waits up to `grace` until what is under way is answered.
  void stop(std::chrono::milliseconds grace);

  std::uint64_t connections() const;  // open now

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpu_platform::listener
