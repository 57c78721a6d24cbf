#pragma once

#include <optional>

#include "base/units.h"

namespace gpu_platform::controller {

// The time the core is told: never runs backwards. It is the wall clock; where that has been set
// back, it goes on from the last time told at the pace of the boot clock, so that no timer stalls.
// Thread: one.
class Clock {
 public:
  Clock() = default;
  virtual ~Clock() = default;

  // Never earlier than `not_before` (the last time the journal knows) or any time told before.
  void start_after(base::Instant not_before) { last_ = not_before; }
  base::Instant now();

 private:
  virtual base::Instant wall() const;
  virtual base::Duration since_boot() const;

  base::Instant last_;
  std::optional<base::Duration> boot_at_last_;
};

}  // namespace gpu_platform::controller
