#include "scheduling/what_if.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "scheduling/cycle/cycle.h"

namespace gpu_platform::scheduling {

namespace {

// A job that others are stopped for borrows nothing, so that each answer needs this stage.
CycleOptions with_stops(CycleOptions options) {
  options.stages = {};
  return options;
}

}  // namespace

struct WhatIf::State {
  Cycle cycle;
  bool may_pass = true;             // jobs ahead, none of which starts
  bool gets_place = true;           // as one of the jobs with a kept place, or the first
  std::optional<Cycle> behind_all;  // for a job that comes last; set if one may
  bool may_pass_all = true;

  bool may_have_others_stopped(const WaitingJob& job) const {
    return gets_place || cycle.fit.may_reclaim(job);
  }
};

WhatIf::WhatIf(Books& books, const model::Policy& policy, const CycleOptions& options,
               std::span<const PlannedStart> planned_starts, const Rank& rank)
    : state_(new State{.cycle{books, policy, with_stops(options)}, .behind_all{}}) {
  const WaitingQueue& queue = books->queue;
  const Rank* first = queue.classes().first();
  const bool is_behind = first != nullptr && *first < rank;
  state_->may_pass = !is_behind || policy.backfill_depth > 0;
  std::vector<PlannedStart> ahead;
  std::ranges::copy_if(planned_starts, std::back_inserter(ahead), [&](const PlannedStart& each) {
    const Rank* other = queue.find_rank(each.job);
    return other != nullptr && *other < rank;
  });
  const std::size_t depth = policy.backfill_depth;
  state_->gets_place = depth == 0 ? !is_behind : ahead.size() < depth;
  state_->cycle.limits.run();
  state_->cycle.placing.keep(ahead);
  if (!books->lending.is_active()) return;
  state_->may_pass_all = queue.size() <= 1 || policy.backfill_depth > 0;
  state_->behind_all.emplace(books, policy, options);
  state_->behind_all->limits.run();
  state_->behind_all->placing.keep(planned_starts);
}

WhatIf::~WhatIf() = default;

std::optional<model::Allocation> WhatIf::start_of(const WaitingJob& waiting) {
  Cycle& cycle = state_->cycle;
  if (cycle.limits.is_over_limits(waiting)) return std::nullopt;
  const WaitingJob* job =
      state_->may_pass ? cycle.limits.narrowed(waiting, Purpose::kTurn) : nullptr;
  if (job != nullptr) {
    if (auto allocation = cycle.cycle.start_of(*job)) return allocation;
    if (auto trusted = cycle.backfilling.trusted_start_of(*job)) {
      return std::move(trusted->allocation);
    }
  }
  // In the strict order no job borrows behind one that waits for its turn, be it the same.
  const bool blocks = job != nullptr && cycle.cycle.depth == 0;
  // Nor does one that others are stopped for.
  const bool gets_stops = job != nullptr && state_->may_have_others_stopped(*job) &&
                          cycle.fit.stops_for(*job, cycle.cycle.slot_of(*job));
  if (blocks || gets_stops || !state_->behind_all || !state_->may_pass_all) return std::nullopt;
  Cycle& last = *state_->behind_all;
  for (const Purpose purpose : {Purpose::kLoan, Purpose::kLast}) {
    job = last.limits.narrowed(waiting, purpose);
    std::optional<model::Allocation> allocation;
    if (job != nullptr) allocation = last.cycle.start_of(*job);
    if (allocation) return allocation;
  }
  return std::nullopt;
}

// No place is ever kept for jobs that come after all others.
std::optional<Slot> WhatIf::slot_of(const WaitingJob& waiting) {
  Cycle& cycle = state_->cycle;
  if (!state_->may_pass || cycle.limits.is_over_limits(waiting)) return std::nullopt;
  const WaitingJob* const job = cycle.limits.narrowed(waiting, Purpose::kTurn);
  return job == nullptr ? std::nullopt : cycle.cycle.slot_of(*job);
}

std::optional<Preemption> WhatIf::preemption_for(const WaitingJob& waiting) {
  Cycle& cycle = state_->cycle;
  if (cycle.limits.is_over_limits(waiting)) return std::nullopt;
  const WaitingJob* const job = cycle.limits.narrowed(waiting, Purpose::kTurn);
  if (job == nullptr || !state_->may_have_others_stopped(*job)) return std::nullopt;
  if (!cycle.fit.make_for(*job, cycle.cycle.slot_of(*job))) return std::nullopt;
  return cycle.cycle.plan.preemptions.back();
}

}  // namespace gpu_platform::scheduling
