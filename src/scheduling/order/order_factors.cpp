#include "scheduling/order/order_factors.h"
#include "model/job_spec.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace gpu_platform::scheduling {

OrderFactors order_factors(const model::Job& job, const OrderBasis& basis, base::Instant now) {
  const model::Turn turn = model::turn_of(job);
  const auto highest = std::max<std::int64_t>(1, *std::ranges::max_element(basis.points));
  const auto own = basis.points[static_cast<std::size_t>(job.spec->priority.priority_class)];
  OrderFactors factors;
  factors.age_days = static_cast<double>((now - turn.since).value()) /
                     static_cast<double>(base::hours(24).value());
  factors.priority = static_cast<double>(own) / static_cast<double>(highest);
  factors.fair_share =
      static_cast<double>(basis.ranking->of(job.spec->team, job.spec->user).factor) / kMaxFactor;
  if (basis.cluster_gpus > 0) {
    factors.size = static_cast<double>(turn.gpus) / static_cast<double>(basis.cluster_gpus);
  }
  return factors;
}

}  // namespace gpu_platform::scheduling
