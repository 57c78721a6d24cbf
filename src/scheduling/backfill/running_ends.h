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
  // Those that are already being ended give back at any moment.
  static constexpr base::Instant kAnyTime = base::Instant();

  struct Key {
    base::Instant end;
    model::AttemptId attempt;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  using Ends = std::map<Key, model::Allocation>;

  // Adds the attempt or changes its end; `yields`: that is when it is to stop for others, if it
  // stands in their way then. True where that is news.
  bool put(model::AttemptId attempt, base::Instant end, const model::Allocation& allocation,
           bool yields = false);
  bool erase(model::AttemptId attempt);

  // Ascending end.
  const Ends& ends() const { return ends_; }
  // Those that yield, likewise.
  const std::set<Key>& yielding() const { return yielding_; }
  std::size_t size() const { return ends_.size(); }

  friend bool operator==(const RunningEnds&, const RunningEnds&) = default;

 private:
  Ends ends_;
  std::set<Key> yielding_;
  std::map<model::AttemptId, base::Instant> end_of_;
};

}  // namespace gpu_platform::scheduling
