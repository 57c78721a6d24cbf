#include "controller/estimate.h"

#include <limits>

#include "controller/state.h"
#include "scheduling/plan_cycle.h"

namespace gpu_platform::controller {

namespace {

// What a cycle looks at, built from a snapshot.
struct Picture {
  scheduling::Cluster cluster;
  scheduling::WaitingQueue queue;
  scheduling::RunningEnds running;
};

Picture picture_of(const Snapshot& snapshot, const model::Policy& policy) {
  Picture picture;
  snapshot.nodes.for_each(
      [&](std::uint64_t, const model::Node& node) { picture.cluster.update(node); });
  snapshot.jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (job.state == model::JobState::kQueued) {
      picture.queue.put({job.id, job.spec, job.submitted_at}, policy);
    }
    for (const model::Attempt& attempt : job.attempts) {
      if (!model::holds_resources(attempt.state)) continue;
      picture.running.put({job.id, attempt.number}, latest_end(job, attempt), attempt.allocation);
    }
  });
  return picture;
}

StartEstimates starts_of(const std::vector<scheduling::Reservation>& reservations) {
  StartEstimates starts;
  for (const scheduling::Reservation& each : reservations) starts[each.job] = each.slot.start;
  return starts;
}

}  // namespace

StartEstimates reserved_starts(const Snapshot& snapshot) {
  return snapshot.reservations == nullptr ? StartEstimates() : starts_of(*snapshot.reservations);
}

StartEstimates estimate_starts(const Snapshot& snapshot) {
  model::Policy policy = *snapshot.policy;
  if (policy.reservation_depth == 0) return {};
  policy.reservation_depth = std::numeric_limits<std::uint32_t>::max();
  Picture picture = picture_of(snapshot, policy);
  const scheduling::Plan plan = scheduling::plan_cycle(
      picture.cluster, picture.queue, policy, {.now = snapshot.at, .running = &picture.running});
  StartEstimates estimates = starts_of(plan.reservations);
  for (const scheduling::Start& start : plan.starts) estimates[start.job] = snapshot.at;
  return estimates;
}

}  // namespace gpu_platform::controller
