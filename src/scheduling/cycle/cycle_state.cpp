#include "scheduling/cycle/cycle_state.h"

#include <algorithm>
#include <utility>

#include "model/job_spec.h"
#include "scheduling/placement/place.h"

namespace gpu_platform::scheduling {

namespace {

const PredictedTimes kNothingExpected;

}  // namespace

CycleState::CycleState(Books& books_in, const model::Policy& policy_in,
                       const CycleOptions& options_in)
    : CycleState(books_in, books_in->queue, books_in->running, kNothingExpected, policy_in,
                 options_in) {}

CycleState::CycleState(Books& books_in, const Supposition& supposed, const model::Policy& policy_in,
                       const CycleOptions& options_in)
    : CycleState(books_in, supposed.queue, supposed.running, supposed.predicted, policy_in,
                 options_in) {}

CycleState::CycleState(Books& books_in, const WaitingQueue& queue_in, const RunningEnds& running_in,
                       const PredictedTimes& expected_in, const model::Policy& policy_in,
                       const CycleOptions& options_in)
    : books(books_in),
      queue(queue_in),
      running(running_in),
      predicted(expected_in),
      policy(policy_in),
      options(options_in),
      depth(policy.backfill_depth),
      trial(books_in.cluster_for_trial()),
      timeline(trial, running, books->reservations,
               {options.now, policy.stop_grace, options.max_changes}) {
  look_again_at(books->reservations.next_change(options.now));
}

bool CycleState::may_start_more() {
  plan.complete = plan.starts.size() < options.max_starts;
  return plan.complete;
}

template <class Place>
std::optional<model::Allocation> CycleState::place_for(const WaitingJob& job,
                                                       const Place& place_it) {
  if (!job.avoid.empty() || !job.avoid_gpus.empty()) {
    const Trial::Mark mark = trial.mark();
    for (const model::NodeId node : job.avoid) trial.shut(node);
    for (const auto& [node, gpus] : trial.cluster().gpu_names().masks_of(job.avoid_gpus)) {
      trial.withhold_gpus(node, gpus);
    }
    std::optional<model::Allocation> allocation = place_it();
    trial.rollback_to(mark);
    if (allocation) return allocation;
  }
  return place_it();
}

std::optional<model::Allocation> CycleState::start_of(const WaitingJob& job) {
  return place_for(job,
                   [&] { return timeline.place_now(job.spec->request, job.spec->time_limit); });
}

std::optional<model::Allocation> CycleState::start_of(const WaitingJob& job,
                                                      base::Duration untouched) {
  return place_for(
      job, [&] { return timeline.place_now(job.spec->request, job.spec->time_limit, untouched); });
}

std::optional<model::Allocation> CycleState::start_after_grace(const WaitingJob& job) {
  const base::Duration held = job.spec->time_limit + policy.stop_grace;
  return place_for(job, [&] { return timeline.place_now(job.spec->request, held); });
}

std::optional<Slot> CycleState::slot_of(const WaitingJob& job) {
  const model::ResourceRequest& request = job.spec->request;
  if (!some_node_up_could_hold(trial.cluster(), request)) return std::nullopt;
  return timeline.earliest(request, job.spec->time_limit);
}

base::Duration CycleState::held_for(const WaitingJob& job) const {
  const auto known = predicted.find(job.id);
  return known == predicted.end() ? job.spec->time_limit : known->second;
}

void CycleState::plan_start(const WaitingJob& job, Slot slot, base::Instant kept_from) {
  keeps_place_of_overdue = keeps_place_of_overdue || job.overdue_since.is_set();
  plan.planned_starts.push_back({job.id, std::move(slot), kept_from});
}

void CycleState::keep_from_now(const Slot& slot, base::Duration time_limit) {
  timeline.book({options.now, slot.allocation}, time_limit + (slot.start - options.now),
                Timeline::Keeps::kGpu);
}

const model::PreemptionHold* CycleState::hold_of(const WaitingJob& job) const {
  const bool is_dropped = std::ranges::binary_search(plan.void_holds, job.id);
  return is_dropped ? nullptr : books->holds.find(job.id);
}

Slot CycleState::kept_slot(const model::PreemptionHold& hold) const {
  return {std::max(options.now, hold.decided_at + policy.stop_grace), hold.allocation};
}

void CycleState::look_again_at(std::optional<base::Instant> at) {
  if (at && (!plan.look_again_at || *at < *plan.look_again_at)) plan.look_again_at = at;
}

}  // namespace gpu_platform::scheduling
