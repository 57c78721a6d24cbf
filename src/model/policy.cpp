#include "model/policy.h"

namespace gpu_platform::model {

std::string_view to_string(UnmanagedProcessPolicy policy) {
  switch (policy) {
    case UnmanagedProcessPolicy::kIgnore:
      return "ignore";
    case UnmanagedProcessPolicy::kAvoid:
      return "avoid";
    case UnmanagedProcessPolicy::kAlert:
      return "alert";
  }
  return "avoid";
}

std::string_view to_string(QueueOrder order) {
  switch (order) {
    case QueueOrder::kPriority:
      return "priority";
    case QueueOrder::kFcfs:
      return "fcfs";
    case QueueOrder::kFairShare:
      return "fair_share";
    case QueueOrder::kWeighted:
      return "weighted";
  }
  return "priority";
}

bool is_preemptible(const JobSpec& spec, const Policy& policy) {
  if (spec.preemptible) return *spec.preemptible;
  return is_below(spec.priority.priority_class, policy.preempt_below) && !spec.takes_input;
}

bool may_borrow(const JobSpec& spec, const Policy& policy) {
  return policy.allow_preemption && is_preemptible(spec, policy);
}

}  // namespace gpu_platform::model
