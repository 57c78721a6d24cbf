#include "execution/kubernetes/pods/idle_watch.h"

#include <algorithm>
#include <vector>

#include "base/units.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {

namespace {

constexpr base::Duration kFollowPause = base::seconds(5);

}  // namespace

void IdleWatch::attempt_started(const Started& started, std::int64_t now_ns) {
  const StartOrder* order = attempts_.order_of(started.attempt);
  if (order == nullptr || !order->spec->idle_timeout) return;
  watched_.insert(started.attempt);
  due_ns_ = now_ns;
}

void IdleWatch::advance(std::int64_t now_ns) {
  if (watched_.empty() || now_ns < due_ns_) return;
  due_ns_ = now_ns + kFollowPause.value();
  std::erase_if(watched_, [this](model::AttemptId attempt) {
    const std::vector<PodView> pods = attempts_.pods_of(attempt);
    for (const PodView& pod : pods) follow_(pod);
    return std::ranges::all_of(pods, is_dead);
  });
}

}  // namespace gpu_platform::execution
