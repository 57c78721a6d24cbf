#include "scheduling/what_if.h"

#include <algorithm>

#include "scheduling/cycle.h"

namespace gpu_platform::scheduling {

struct WhatIf::State {
  CycleOptions options;
  Cycle cycle;
  bool may_pass = true;             // those ahead, none of whom starts
  bool gets_place = true;           // as one of those for whom places are kept, or the first
  std::optional<Cycle> behind_all;  // for who would borrow and comes last; where somebody may
  bool may_pass_all = true;

  State(Books& books, const model::Policy& policy, const CycleOptions& given)
      : options(given), cycle(books, policy, options) {}

  Cycle* cycle_for(const WaitingJob& job) {
    if (!behind_all || !cycle.would_borrow(job)) return may_pass ? &cycle : nullptr;
    return may_pass_all ? &*behind_all : nullptr;
  }
};

WhatIf::WhatIf(Books& books, const model::Policy& policy, const CycleOptions& options,
               std::span<const Reservation> reservations, const Rank& rank)
    : state_(std::make_unique<State>(books, policy, options)) {
  const WaitingQueue& queue = books->queue;
  const Rank* first = queue.classes().first();
  const bool is_behind = first != nullptr && *first < rank;
  state_->may_pass = !is_behind || policy.reservation_depth > 0;
  const auto kept = std::ranges::count_if(reservations, [&](const Reservation& each) {
    const Rank* other = queue.find_rank(each.job);
    return other != nullptr && *other < rank;
  });
  const std::size_t depth = policy.reservation_depth;
  state_->gets_place = depth == 0 ? !is_behind : static_cast<std::size_t>(kept) < depth;
  state_->cycle.quota();
  state_->cycle.keep_places(reservations, rank);
  if (!books->lending.is_active()) return;
  state_->may_pass_all = queue.size() <= 1 || policy.reservation_depth > 0;
  state_->behind_all.emplace(books, policy, state_->options);
  state_->behind_all->quota();
  state_->behind_all->keep_all_places(reservations);
}

WhatIf::~WhatIf() = default;

std::optional<model::Allocation> WhatIf::start_of(const WaitingJob& job) {
  Cycle* cycle = state_->cycle_for(job);
  if (cycle == nullptr || cycle->is_over_quota(job)) return std::nullopt;
  if (auto allocation = cycle->start_of(job)) return allocation;
  auto trusted = cycle->trusted_start_of(job);
  return trusted ? std::optional(std::move(trusted->allocation)) : std::nullopt;
}

std::optional<Slot> WhatIf::slot_of(const WaitingJob& job) {
  // No place is ever kept for those who borrow.
  Cycle* cycle = state_->cycle_for(job);
  if (cycle != &state_->cycle || cycle->is_over_quota(job)) return std::nullopt;
  return cycle->slot_of(job);
}

std::optional<Preemption> WhatIf::preemption_for(const WaitingJob& job) {
  Cycle& cycle = state_->cycle;
  if (cycle.is_over_quota(job)) return std::nullopt;
  if (!state_->gets_place && !cycle.may_reclaim(job)) return std::nullopt;
  return cycle.preemption_for(job);
}

}  // namespace gpu_platform::scheduling
