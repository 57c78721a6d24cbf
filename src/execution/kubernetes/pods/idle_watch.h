#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <utility>

#include "execution/engine.h"
#include "execution/kubernetes/pods/pod_attempts.h"
#include "execution/kubernetes/pods/pod_view.h"
#include "model/ids.h"

namespace gpu_platform::execution {

// Has the output of running jobs with an idle timeout followed, because output is what shows that
// such a job is not idle. The timeout itself is kept by PodAttempts. Thread: one owner.
class IdleWatch {
 public:
  // `follow` begins to follow a pod's output, or does nothing if it is followed already. The
  // attempts outlive it.
  IdleWatch(const PodAttempts& attempts, std::function<void(const PodView&)> follow)
      : attempts_(attempts), follow_(std::move(follow)) {}

  // An attempt runs now; one without an idle timeout is not for it. Times are monotonic.
  void attempt_started(const Started& started, std::int64_t now_ns);
  // Follows the pods of all such attempts, and again every few seconds: a stream may have broken.
  // Attempts whose pods have all ended are dropped.
  void advance(std::int64_t now_ns);

 private:
  const PodAttempts& attempts_;
  const std::function<void(const PodView&)> follow_;
  std::set<model::AttemptId> watched_;
  std::int64_t due_ns_ = 0;
};

}  // namespace gpu_platform::execution
