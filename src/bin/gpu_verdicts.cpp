#include "bin/gpu_verdicts.h"

#include <cstddef>
#include <utility>

#include "base/check.h"

namespace gpu_platform::bin {

health::GpuVerdict GpuVerdicts::judge(const controller::Snapshot& snapshot,
                                      const health::Records& records, const health::GpuKey& gpu,
                                      base::Instant now) {
  return health::judge_gpu(records, gpu, *rules_of(*snapshot.policy), now);
}

std::shared_ptr<const health::Rules> GpuVerdicts::rules_of(const model::Policy& policy) {
  const std::lock_guard lock(mutex_);
  if (rules_ == nullptr || profile_ != policy.health_profile) {
    constexpr health::Profile kProfiles[model::kHealthProfiles] = {
        health::Profile::kNvidia, health::Profile::kCloud, health::Profile::kStrict};
    auto made = health::Rules::make(kProfiles[static_cast<std::size_t>(policy.health_profile)]);
    CHECK(made);
    rules_ = std::make_shared<const health::Rules>(std::move(*made));
    profile_ = policy.health_profile;
  }
  return rules_;
}

}  // namespace gpu_platform::bin
