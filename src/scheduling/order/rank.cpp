#include "scheduling/order/rank.h"

#include <iterator>

#include "base/check.h"

namespace gpu_platform::scheduling {

Rank rank_of(model::JobId job, const model::JobSpec& spec, base::Instant submitted_at,
             const model::Policy& policy) {
  const auto priority_class = static_cast<std::size_t>(spec.priority.priority_class);
  CHECK(priority_class < std::size(policy.priority_points));
  return {.points = policy.priority_points[priority_class],
          .number = spec.priority.number,
          .submitted_at = submitted_at,
          .job = job};
}

}  // namespace gpu_platform::scheduling
