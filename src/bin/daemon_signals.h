#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/units.h"
#include "bin/process_origin.h"
#include "os/descriptor.h"

namespace gpu_platform::bin {

// The signals that end (SIGTERM, SIGINT) or reload (SIGHUP) the daemon. While it lives they are
// blocked and read here and nowhere else; a signal stays pending until then. Made before the
// process has other threads, which take over what is blocked. Used by one thread, except for
// is_told_to_end().
class DaemonSignals {
 public:
  // Also ignores SIGPIPE.
  DaemonSignals();

  // Returns whether a signal to end is pending. It waits for nothing and takes no signal.
  static bool is_told_to_end();

  // Waits for that time. Returns false once a signal says that the process must end; what asks to
  // reload is taken and forgotten.
  bool pause(base::Duration time) const;

  // Waits for the next signal: the sender of a SIGHUP, or nothing when the process must end.
  std::optional<ActingProcess> next() const;

 private:
  os::Descriptor signals_;
};

}  // namespace gpu_platform::bin
