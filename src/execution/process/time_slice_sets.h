#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "execution/engine.h"
#include "node/protocol.h"

namespace gpu_platform::execution {

// Returns whether the attempt shares a GPU by taking turns: it may be frozen.
bool takes_turns(const StartOrder& order);

// Which attempts take turns on which GPU of this host: what the launcher is to know of it, told
// once after each change. An attempt takes turns from its start until it is stopped or has ended.
// Pure. Thread: one.
class TimeSliceSets {
 public:
  // `slice`: of jobs that name none.
  explicit TimeSliceSets(base::Duration slice) : slice_(slice) {}

  // Both may be repeated. An attempt that takes no turns changes nothing.
  void join(const StartOrder& order);
  void leave(model::AttemptId attempt);
  void use_slice(base::Duration slice);
  // There is another launcher, which knows nothing.
  void tell_all_again();

  // What has changed since it was told, a message for each GPU.
  std::vector<node::TimeSlices> take_changes();

 private:
  struct Turns {
    std::uint32_t weight = 1;
    base::Duration slice;  // zero: the one of all that name none
  };
  using OfGpu = std::map<model::AttemptId, Turns>;

  node::TimeSlices message_for(const std::string& gpu) const;

  base::Duration slice_;
  std::map<std::string, OfGpu> gpus_;  // by UUID
  std::set<std::string> changed_;
  std::map<std::string, node::TimeSlices> told_;  // those with two attempts or more
};

}  // namespace gpu_platform::execution
