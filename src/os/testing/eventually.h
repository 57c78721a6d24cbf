#pragma once

#include <poll.h>

#include "base/units.h"
#include "os/clock.h"

// Waiting in tests, for what other threads or processes do. The CPU is left to them meanwhile: a
// test that spins takes it from the code that it waits for.

namespace gpu_platform::os {

// Asks every millisecond. Returns true once the condition holds, false after the limit: so long
// that only what never comes reaches it, on a loaded machine too.
template <class Condition>
bool eventually(Condition&& condition, base::Duration limit = base::seconds(60)) {
  const std::int64_t end = monotonic_ns() + limit.value();
  while (!condition()) {
    if (monotonic_ns() > end) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

}  // namespace gpu_platform::os
