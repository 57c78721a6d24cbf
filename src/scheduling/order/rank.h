#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/shared.h"
#include "base/units.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/policy.h"
#include "scheduling/order/fair_share_ranking.h"

namespace gpu_platform::scheduling {

// A waiting job's place in the queue; the smaller goes first. It changes only with events (the
// policy, the job, counted usage), never with time alone, so a long queue is never sorted again for
// a cycle. Fields that an order does not use are zero.
struct Rank {
  std::int64_t place = 0;      // of the account; the smaller first
  std::int64_t points = 0;     // of the class, or the weighted sum; more first
  bool is_overdue = false;     // first
  std::uint8_t number = 0;     // inside the class; the smaller first
  base::Instant submitted_at;  // of its turn; of overdue ones: since when
  model::JobId turn;           // whose it has: its own, unless its user has raised a job
  model::JobId job;

  friend bool operator==(const Rank&, const Rank&) = default;
  friend std::strong_ordering operator<=>(const Rank& a, const Rank& b) {
    if (const auto by_place = a.place <=> b.place; by_place != 0) return by_place;
    if (const auto by_points = b.points <=> a.points; by_points != 0) return by_points;
    if (a.is_overdue != b.is_overdue) {
      return a.is_overdue ? std::strong_ordering::less : std::strong_ordering::greater;
    }
    if (const auto by_number = a.number <=> b.number; by_number != 0) return by_number;
    if (const auto by_time = a.submitted_at <=> b.submitted_at; by_time != 0) return by_time;
    if (const auto by_turn = a.turn <=> b.turn; by_turn != 0) return by_turn;
    return a.job <=> b.job;
  }
};

// All data that ranks depend on besides the job. Copies share the large parts.
struct OrderBasis {
  model::QueueOrder order = model::QueueOrder::kPriority;
  std::int64_t points[4] = {};
  model::OrderWeights weights;
  base::Shared<model::Organisation> organisation;
  base::Shared<FairShareRanking> ranking;  // for the orders that depend on usage
  std::uint64_t cluster_gpus = 0;          // of the weighted order, where size counts
  bool has_budgets = false;                // it matters which account a job is of

  // Returns the basis without rankings, GPUs and budgets.
  static OrderBasis of(const model::Policy& policy);
  bool is_of(const model::Policy& policy) const;

  friend bool operator==(const OrderBasis&, const OrderBasis&) = default;
};

// An overdue job goes before its class if the order is by class. Else it goes before all jobs, by
// class and then by how long it has been overdue. A turn that it has from another job stands for
// all of its own that decides between jobs of one account and class.
Rank rank_of(model::JobId job, const model::JobSpec& spec, base::Instant submitted_at,
             const OrderBasis& basis, base::Instant overdue_since = {},
             const std::optional<model::Turn>& turn = {});
Rank rank_of(const model::Job& job, const OrderBasis& basis);

}  // namespace gpu_platform::scheduling
