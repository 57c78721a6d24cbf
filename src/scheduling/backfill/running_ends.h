#pragma once

#include <compare>
#include <cstddef>
#include <map>
#include <set>

#include "base/units.h"
#include "model/allocation.h"
#include "model/ids.h"

namespace gpu_platform::scheduling {

// The latest ends of running attempts, by hard limits: the end of the time limit, or an earlier
// time at which the attempt is to yield. The caller adds the grace of the policy.
//
// Ownership: holds copies. Thread: one owner, which reports each attempt that comes, changes or
// goes. Cost: O(log attempts).
class RunningEnds {
 public:
  // Attempts that are already being ended may give back what they hold at any moment.
  static constexpr base::Instant kAnyTime = base::Instant();

  struct Key {
    base::Instant end;
    model::AttemptId attempt;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  using Ends = std::map<Key, model::Allocation>;

  // Adds the attempt or changes its end. `yields`: at that end it is to stop for other jobs, if it
  // stands in their way then. Returns true if anything has changed.
  bool put(model::AttemptId attempt, base::Instant end, const model::Allocation& allocation,
           bool yields = false);
  bool erase(model::AttemptId attempt);

  // The ends in ascending order.
  const Ends& ends() const { return ends_; }
  // The same for the attempts that yield.
  const std::set<Key>& yielding() const { return yielding_; }
  std::size_t size() const { return ends_.size(); }

  friend bool operator==(const RunningEnds&, const RunningEnds&) = default;

 private:
  Ends ends_;
  std::set<Key> yielding_;
  std::map<model::AttemptId, base::Instant> end_of_;
};

}  // namespace gpu_platform::scheduling
