#include "model/policy.h"

#include <algorithm>
#include <optional>

#include "model/gpu_catalogue.h"
#include "model/job_spec.h"

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

std::string_view to_string(HealthProfile profile) {
  switch (profile) {
    case HealthProfile::kNvidia:
      return "nvidia";
    case HealthProfile::kCloud:
      return "cloud";
    case HealthProfile::kStrict:
      return "strict";
  }
  return "nvidia";
}

HealthMode mode_of(const Policy& policy) {
  return policy.sick_gpus == SickGpuPolicy::kOff ? HealthMode::kOff : policy.health_mode;
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

std::uint32_t gpu_weight_of(const std::string& type, const std::vector<GpuWeight>& weights) {
  const auto exact = std::ranges::find(weights, type, &GpuWeight::type);
  if (exact != weights.end()) return exact->thousandths;
  const auto family = std::ranges::find_if(
      weights, [&](const GpuWeight& weight) { return gpu_type_matches(weight.type, type); });
  return family == weights.end() ? GpuWeight().thousandths : family->thousandths;
}

bool is_preemptible(const JobSpec& spec, const Policy& policy) {
  if (spec.preemptible) return *spec.preemptible;
  return is_below(spec.priority.priority_class, policy.preempt_below) && !spec.takes_input;
}

bool may_borrow(const JobSpec& spec, const Policy& policy) {
  return policy.allow_preemption && is_preemptible(spec, policy);
}

TeamRules team_rules(const Policy& policy, std::string_view name) {
  std::optional<base::Duration> preempt_min_runtime;
  std::optional<base::Duration> reclaim_min_runtime;
  std::optional<std::uint32_t> max_reclaims_per_job;
  std::optional<base::Duration> default_time_limit;
  std::string default_time_limit_of;
  const auto take = [](auto& value, const auto& of_team) {
    if (!value) value = of_team;
  };
  // Once round at most: config/ refuses circles.
  const Team* team = name.empty() ? nullptr : find_team(*policy.organisation, name);
  while (team != nullptr) {
    take(preempt_min_runtime, team->preempt_min_runtime);
    take(reclaim_min_runtime, team->reclaim_min_runtime);
    take(max_reclaims_per_job, team->max_reclaims_per_job);
    if (!default_time_limit && team->default_time_limit) default_time_limit_of = team->name;
    take(default_time_limit, team->default_time_limit);
    team = team->parent.empty() ? nullptr : find_team(*policy.organisation, team->parent);
  }
  const base::Duration of_site = policy.default_time_limit == base::Duration()
                                     ? policy.max_time_limit
                                     : policy.default_time_limit;
  return {preempt_min_runtime.value_or(policy.preempt_min_runtime),
          reclaim_min_runtime.value_or(policy.reclaim_min_runtime),
          max_reclaims_per_job.value_or(policy.max_reclaims_per_job),
          std::min(default_time_limit.value_or(of_site), policy.max_time_limit),
          std::move(default_time_limit_of)};
}

}  // namespace gpu_platform::model
