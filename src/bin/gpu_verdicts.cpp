#include "bin/gpu_verdicts.h"

#include "health/policy_rules.h"

namespace gpu_platform::bin {

health::GpuVerdict GpuVerdicts::judge(const controller::Snapshot& snapshot,
                                      const health::Records& records, const health::GpuKey& gpu,
                                      base::Instant now) {
  return health::judge_gpu(records, gpu, *rules_of(*snapshot.policy), now);
}

std::shared_ptr<const health::Rules> GpuVerdicts::rules_of(const model::Policy& policy) {
  const std::lock_guard lock(mutex_);
  const bool is_same = profile_ == policy.health_profile && site_rules_ == policy.health_rules;
  if (rules_ == nullptr || !is_same) {
    rules_ = std::make_shared<const health::Rules>(health::known_rules(policy));
    profile_ = policy.health_profile;
    site_rules_ = policy.health_rules;
  }
  return rules_;
}

}  // namespace gpu_platform::bin
