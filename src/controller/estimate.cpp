#include "controller/estimate.h"

#include <limits>

#include "scheduling/plan_cycle.h"

namespace gpu_platform::controller {

namespace {

StartEstimates starts_of(const std::vector<scheduling::Reservation>& reservations) {
  StartEstimates starts;
  for (const scheduling::Reservation& each : reservations) starts[each.job] = each.slot.start;
  return starts;
}

}  // namespace

StartEstimates reserved_starts(const Snapshot& snapshot) {
  return snapshot.reservations == nullptr ? StartEstimates() : starts_of(*snapshot.reservations);
}

StartEstimates estimate_starts(Picture& picture) {
  model::Policy policy = *picture.snapshot().policy;
  if (policy.reservation_depth == 0) return {};
  policy.reservation_depth = std::numeric_limits<std::uint32_t>::max();
  const base::Instant now = picture.snapshot().at;
  const scheduling::Plan plan =
      scheduling::plan_cycle(picture.books(), policy, Picture::options(now));
  StartEstimates estimates = starts_of(plan.reservations);
  for (const scheduling::Start& start : plan.starts) estimates[start.job] = now;
  return estimates;
}

}  // namespace gpu_platform::controller
