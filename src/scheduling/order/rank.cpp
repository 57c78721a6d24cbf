#include "scheduling/order/rank.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/check.h"
#include "model/job_spec.h"

namespace gpu_platform::scheduling {

namespace {

__extension__ using Points = __int128;

constexpr Points kOnePoint = Points{1} << 20;
constexpr std::int64_t kDay = base::hours(24).value();

std::int64_t class_points(const model::JobSpec& spec, const OrderBasis& basis) {
  const auto priority_class = static_cast<std::size_t>(spec.priority.priority_class);
  CHECK(priority_class < std::size(basis.points));
  return basis.points[priority_class];
}

Rank overdue_rank(model::JobId job, const model::JobSpec& spec, base::Instant since,
                  const OrderBasis& basis) {
  Rank rank{.is_overdue = true, .submitted_at = since, .turn = job, .job = job};
  rank.points = class_points(spec, basis);
  if (basis.order != model::QueueOrder::kPriority) {
    rank.place = std::numeric_limits<std::int64_t>::min();
  }
  return rank;
}

}  // namespace

OrderBasis OrderBasis::of(const model::Policy& policy) {
  OrderBasis basis;
  basis.order = policy.order;
  std::ranges::copy(policy.priority_points, basis.points);
  basis.weights = policy.weights;
  basis.organisation = policy.organisation;
  return basis;
}

bool OrderBasis::is_of(const model::Policy& policy) const {
  return order == policy.order && weights == policy.weights &&
         organisation == policy.organisation && std::ranges::equal(points, policy.priority_points);
}

namespace {

// Returns the weighted sum, in 2^-20 of a point; docs/scheduling.md has the formula. The time since
// 1970, which all jobs have waited, is left out, so a job's sum does not change with time.
std::int64_t points_of_turn(const model::JobSpec& spec, const model::Turn& turn,
                            const OrderBasis& basis) {
  const model::OrderWeights& weights = basis.weights;
  const std::int64_t max_points =
      std::max<std::int64_t>(1, *std::ranges::max_element(basis.points));
  Points sum = -(kOnePoint * weights.age * turn.since.unix_ns() / kDay);
  sum += kOnePoint * weights.priority * class_points(spec, basis) / max_points;
  const FairShareRank account_rank = basis.ranking->of(spec.team, spec.user);
  sum += kOnePoint * weights.fair_share * account_rank.factor / kMaxFactor;
  if (basis.cluster_gpus > 0) {
    sum += kOnePoint * weights.size * static_cast<Points>(turn.gpus) /
           static_cast<Points>(basis.cluster_gpus);
  }
  return static_cast<std::int64_t>(sum);
}

}  // namespace

Rank rank_of(model::JobId job, const model::JobSpec& spec, base::Instant submitted_at,
             const OrderBasis& basis, base::Instant overdue_since,
             const std::optional<model::Turn>& turn) {
  if (overdue_since.is_set()) return overdue_rank(job, spec, overdue_since, basis);
  const model::Turn own{job, submitted_at, spec.priority.number, model::total_gpus(spec.request)};
  const model::Turn& has = turn ? *turn : own;
  Rank rank{.submitted_at = has.since, .turn = has.of, .job = job};
  switch (basis.order) {
    case model::QueueOrder::kFcfs:
      return rank;
    case model::QueueOrder::kWeighted:
      rank.points = points_of_turn(spec, has, basis);
      rank.number = has.number;
      return rank;
    case model::QueueOrder::kFairShare:
      rank.place = basis.ranking->of(spec.team, spec.user).place;
      break;
    case model::QueueOrder::kPriority:
      break;
  }
  rank.points = class_points(spec, basis);
  rank.number = has.number;
  return rank;
}

Rank rank_of(const model::Job& job, const OrderBasis& basis) {
  return rank_of(job.id, *job.spec, job.submitted_at, basis, job.overdue_since, job.turn);
}

}  // namespace gpu_platform::scheduling
