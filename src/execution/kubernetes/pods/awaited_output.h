#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "execution/kubernetes/pods/pod_attempts.h"
#include "model/ids.h"

namespace gpu_platform::execution {

// The attempts that have ended and whose last output is still being fetched. Readers of output wait
// for it, at most half a minute.
// Thread: the engine's; is_awaited() any.
class AwaitedOutput {
 public:
  // `forget` is called once of an attempt that is forgotten, when its output is there: no more of
  // it comes. The attempts outlive it.
  AwaitedOutput(const PodAttempts& attempts, std::function<void(model::AttemptId)> forget)
      : attempts_(attempts), forget_(std::move(forget)) {}

  // An attempt has ended. Call before the end is told: a reader may ask as soon as it is.
  void attempt_ended(model::AttemptId attempt, std::int64_t now_ns);
  // An attempt is forgotten. One without devices may be, before its output has come.
  void attempt_forgotten(model::AttemptId attempt) { forgotten_.insert(attempt); }
  // Drops the attempts whose output has come.
  void drop_complete();

  bool is_awaited(model::AttemptId attempt, std::int64_t now_ns) const;

 private:
  const PodAttempts& attempts_;
  const std::function<void(model::AttemptId)> forget_;
  std::set<model::AttemptId> forgotten_;  // and their output may still be awaited
  mutable std::mutex mutex_;
  std::map<model::AttemptId, std::int64_t> until_ns_;  // guarded by mutex_
};

}  // namespace gpu_platform::execution
