#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "listener/client.h"
#include "listener/link.h"
#include "listener/tls.h"
#include "os/descriptor.h"

namespace gpu_platform::listener {

struct FrontOptions {
  Settings settings;
  RequestLimits limits;
  Times times;
  // Takes one line for the daemon's log; called from any of the front's threads. Null: no lines.
  std::function<void(const std::string& line)> warn;
};

// The doors to clients of other machines: takes connections on its sockets, and answers each on one
// of its threads.
class Front {
 public:
  // The certificates of the doors; each speaks its own protocol.
  struct Certificates {
    const Tls& rest;
    const Tls& grpc;
  };
  // `upstream` and those of `tls` outlive the front.
  Front(FrontOptions options, Upstream& upstream, Certificates tls);
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
