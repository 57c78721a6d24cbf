#include "execution/kubernetes/pods/start_timeout.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::execution {

void StartTimeout::advance(base::Instant now) {
  if (std::exchange(is_bound_, false)) last_bound_ = now;
}

base::Instant StartTimeout::end_of(StartWait& wait, base::Instant asked_at,
                                   bool is_in_queue) const {
  if (!wait.since.is_set()) wait.since = asked_at;
  if (is_in_queue || wait.was_in_queue) wait.since = std::max(wait.since, last_bound_);
  wait.was_in_queue = is_in_queue;
  return wait.since + timeout_;
}

std::string StartTimeout::error(std::string_view step) const {
  return fmt::format(
      "not all of its pods had a node within {} s (engines.kubernetes.start_timeout){}{}",
      base::whole_milliseconds(timeout_) / 1000, step.empty() ? "" : "; ", step);
}

}  // namespace gpu_platform::execution
