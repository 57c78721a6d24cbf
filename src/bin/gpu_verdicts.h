#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "controller/snapshot.h"
#include "health/rules.h"
#include "health/verdict.h"
#include "model/policy.h"

namespace gpu_platform::bin {

// Judges GPUs for people who ask, by the rules that the core uses, also where nothing follows from
// it. Thread: any.
class GpuVerdicts {
 public:
  health::GpuVerdict judge(const controller::Snapshot& snapshot, const health::Records& records,
                           const health::GpuKey& gpu, base::Instant now);

 private:
  std::shared_ptr<const health::Rules> rules_of(const model::Policy& policy);

  std::mutex mutex_;
  std::shared_ptr<const health::Rules> rules_;  // of those below; null before the first question
  model::HealthProfile profile_ = model::HealthProfile::kNvidia;
  std::vector<model::HealthRule> site_rules_;
};

}  // namespace gpu_platform::bin
