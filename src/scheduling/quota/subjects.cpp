#include "scheduling/quota/subjects.h"
#include "model/job_spec.h"

#include <algorithm>

namespace gpu_platform::scheduling {

namespace {

using model::Quota;
using model::QuotaHolder;

const Quota* find_named(const std::vector<model::NamedQuota>& quotas, const std::string& name) {
  const auto found = std::ranges::find(quotas, name, &model::NamedQuota::name);
  return found == quotas.end() ? nullptr : &found->quota;
}

template <class Predicate>
bool any_quota(const model::Organisation& organisation, const Predicate& holds) {
  const auto of_named = [&](const model::NamedQuota& named) { return holds(named.quota); };
  return holds(organisation.of_each_user) ||
         std::ranges::any_of(organisation.teams,
                             [&](const model::Team& team) { return holds(team.quota); }) ||
         std::ranges::any_of(organisation.of_users, of_named) ||
         std::ranges::any_of(organisation.of_projects, of_named);
}

}  // namespace

const Quota* quota_of(const model::Organisation& organisation, const QuotaSubject& subject) {
  const Quota* quota = nullptr;
  if (subject.holder == QuotaHolder::kTeam) {
    const model::Team* team = model::find_team(organisation, subject.name);
    quota = team == nullptr ? nullptr : &team->quota;
  } else if (subject.holder == QuotaHolder::kUser) {
    quota = find_named(organisation.of_users, subject.name);
    if (quota == nullptr) quota = &organisation.of_each_user;
  } else {
    quota = find_named(organisation.of_projects, subject.name);
  }
  return quota == nullptr || quota->is_empty() ? nullptr : quota;
}

std::vector<QuotaLimit> limits_of(const model::Organisation& organisation,
                                  const model::JobSpec& spec) {
  std::vector<QuotaLimit> limits;
  const auto add = [&](QuotaHolder holder, const std::string& name) {
    const QuotaSubject subject{holder, name};
    if (const Quota* quota = quota_of(organisation, subject)) limits.push_back({subject, *quota});
  };
  // Once round at most: config/ refuses circles.
  const model::Team* team = spec.team.empty() ? nullptr : model::find_team(organisation, spec.team);
  for (; team != nullptr; team = model::find_team(organisation, team->parent)) {
    add(QuotaHolder::kTeam, team->name);
    if (team->parent.empty()) break;
  }
  add(QuotaHolder::kUser, spec.user);
  if (!spec.project.empty()) add(QuotaHolder::kProject, spec.project);
  return limits;
}

bool limits_anything(const model::Organisation& organisation) {
  return any_quota(organisation, [](const Quota& quota) { return !quota.is_empty(); });
}

bool limits_starts(const model::Organisation& organisation) {
  return any_quota(organisation, [](const Quota& quota) {
    return quota.max_gpus || quota.max_running_jobs || quota.gpu_hours || quota.guaranteed_gpus ||
           !quota.gpu_types.empty();
  });
}

bool guarantees_anything(const model::Organisation& organisation) {
  return any_quota(organisation, [](const Quota& quota) {
    return quota.guaranteed_gpus || std::ranges::any_of(quota.gpu_types, [](const auto& of_type) {
             return of_type.guaranteed_gpus.has_value();
           });
  });
}

bool weighs_surplus(const model::Organisation& organisation) {
  return organisation.allocation != model::AllocationMode::kDynamic &&
         any_quota(organisation, [](const Quota& quota) {
           return quota.guaranteed_gpus && quota.over_quota_weight;
         });
}

bool limits_types(const model::Organisation& organisation) {
  return any_quota(organisation, [](const Quota& quota) {
    return std::ranges::any_of(quota.gpu_types, [](const model::TypeQuota& of_type) {
      return of_type.max_gpus || of_type.gpu_hours;
    });
  });
}

bool limits_hours(const model::Organisation& organisation) {
  return any_quota(organisation, [](const Quota& quota) {
    return quota.gpu_hours || std::ranges::any_of(quota.gpu_types, [](const auto& of_type) {
             return of_type.gpu_hours.has_value();
           });
  });
}

std::uint64_t gpu_time(base::GpuShare gpus, base::Duration time) {
  if (time <= base::Duration()) return 0;
  return static_cast<std::uint64_t>(gpus.value()) *
         static_cast<std::uint64_t>(base::whole_milliseconds(time));
}

base::GpuShare gpu_share_of(const model::ResourceRequest& request) {
  return request.share_per_gpu * static_cast<std::int64_t>(model::total_gpus(request));
}

}  // namespace gpu_platform::scheduling
