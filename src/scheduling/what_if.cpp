#include "scheduling/what_if.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "scheduling/cycle/cycle.h"

namespace gpu_platform::scheduling {

struct WhatIf::State {
  Cycle cycle;
  bool may_pass = true;             // those ahead, none of whom starts
  bool gets_place = true;           // as one of those for whom places are kept, or the first
  std::optional<Cycle> behind_all;  // for who would borrow and comes last; where somebody may
  bool may_pass_all = true;

  Cycle* cycle_for(const WaitingJob& job) {
    if (!behind_all || !cycle.limits.would_borrow(job)) return may_pass ? &cycle : nullptr;
    return may_pass_all ? &*behind_all : nullptr;
  }
};

WhatIf::WhatIf(Books& books, const model::Policy& policy, const CycleOptions& options,
               std::span<const PlannedStart> planned_starts, const Rank& rank)
    : state_(new State{.cycle{books, policy, options}, .behind_all{}}) {
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

std::optional<model::Allocation> WhatIf::start_of(const WaitingJob& job) {
  Cycle* cycle = state_->cycle_for(job);
  if (cycle == nullptr || cycle->limits.is_over_quota(job)) return std::nullopt;
  if (auto allocation = cycle->ground.start_of(job)) return allocation;
  auto trusted = cycle->backfilling.trusted_start_of(job);
  return trusted ? std::optional(std::move(trusted->allocation)) : std::nullopt;
}

std::optional<Slot> WhatIf::slot_of(const WaitingJob& job) {
  // No place is ever kept for those who borrow.
  Cycle* cycle = state_->cycle_for(job);
  if (cycle != &state_->cycle || cycle->limits.is_over_quota(job)) return std::nullopt;
  return cycle->ground.slot_of(job);
}

std::optional<Preemption> WhatIf::preemption_for(const WaitingJob& job) {
  Cycle& cycle = state_->cycle;
  if (cycle.limits.is_over_quota(job)) return std::nullopt;
  if (!state_->gets_place && !cycle.fit.may_reclaim(job)) return std::nullopt;
  if (!cycle.fit.make_for(job, cycle.ground.slot_of(job))) return std::nullopt;
  return cycle.ground.plan.preemptions.back();
}

}  // namespace gpu_platform::scheduling
