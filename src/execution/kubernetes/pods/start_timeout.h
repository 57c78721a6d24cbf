#pragma once

#include <string>
#include <string_view>

#include "base/units.h"

// How long the pods of a start may have no node. kube-scheduler looks at pods one after the other,
// a dozen of them a second with the limits that it has by default. While a start's pods are in its
// queue, their time begins again whenever it gives a node to another pod of the platform.

namespace gpu_platform::execution {

// The timeout of one start.
struct StartWait {
  base::Instant since;        // unset: it was not looked at yet
  bool was_in_queue = false;  // of kube-scheduler
};

class StartTimeout {
 public:
  // Zero: without end.
  explicit StartTimeout(base::Duration timeout) : timeout_(timeout) {}

  bool is_endless() const { return timeout_ == base::Duration(); }

  // A pod was given a node, as is known at the next advance().
  void note_bound() { is_bound_ = true; }
  void advance(base::Instant now);

  // When a start that was asked for then has waited too long. `is_in_queue`: all its pods are made,
  // and kube-scheduler has said nothing of those without a node.
  base::Instant end_of(StartWait& wait, base::Instant asked_at, bool is_in_queue) const;

  // Why such a start is taken back; `step`: what it waited for, in words, or nothing.
  std::string error(std::string_view step) const;

 private:
  base::Duration timeout_;
  base::Instant last_bound_;
  bool is_bound_ = false;
};

}  // namespace gpu_platform::execution
