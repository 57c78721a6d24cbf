#include "scheduling/what_if.h"

#include "scheduling/cycle.h"

namespace gpu_platform::scheduling {

struct WhatIf::State {
  CycleOptions options;
  Cycle cycle;
  bool may_pass = true;  // those ahead, none of whom starts

  State(Cluster& cluster, const WaitingQueue& queue, const model::Policy& policy,
        const CycleOptions& given)
      : options(given), cycle(cluster, queue, policy, options) {}
};

WhatIf::WhatIf(Cluster& cluster, const WaitingQueue& queue, const model::Policy& policy,
               const CycleOptions& options, std::span<const Reservation> reservations,
               const Rank& rank)
    : state_(std::make_unique<State>(cluster, queue, policy, options)) {
  const Rank* first = queue.classes().first();
  const bool is_behind = first != nullptr && *first < rank;
  state_->may_pass = !is_behind || policy.reservation_depth > 0;
  state_->cycle.quota();
  state_->cycle.keep_places(reservations, rank);
}

WhatIf::~WhatIf() = default;

std::optional<model::Allocation> WhatIf::start_of(const WaitingJob& job) {
  if (!state_->may_pass || state_->cycle.is_over_quota(job)) return std::nullopt;
  return state_->cycle.start_of(job);
}

std::optional<Slot> WhatIf::slot_of(const WaitingJob& job) {
  if (!state_->may_pass || state_->cycle.is_over_quota(job)) return std::nullopt;
  return state_->cycle.slot_of(job);
}

}  // namespace gpu_platform::scheduling
