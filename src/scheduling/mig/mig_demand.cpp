#include "scheduling/mig/mig_demand.h"

#include "base/check.h"

namespace gpu_platform::scheduling {

bool MigDemand::count(std::size_t profile) {
  CHECK(profile < counts_.size());
  counts_[profile] += kOne;
  if (++requests_ < kEpoch) return false;
  requests_ = 0;
  weights_ = counts_;
  for (std::uint64_t& count : counts_) count /= 2;
  return true;
}

std::vector<bool> MigDemand::is_wanted() const {
  std::vector<bool> wanted;
  wanted.reserve(weights_.size());
  for (const std::uint64_t weight : weights_) wanted.push_back(weight > 0);
  return wanted;
}

}  // namespace gpu_platform::scheduling
