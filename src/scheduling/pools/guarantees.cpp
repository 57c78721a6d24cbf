#include "scheduling/pools/guarantees.h"

#include <algorithm>

namespace gpu_platform::scheduling {

namespace {

using model::AllocationMode;
using model::QuotaHolder;

base::GpuShare whole(std::uint64_t gpus) {
  return base::kWholeGpu * static_cast<std::int64_t>(gpus);
}

template <class Visit>
void for_each_guarantee(const model::Organisation& organisation, const Visit& visit) {
  for (const model::Team& team : organisation.teams) {
    if (team.quota.guaranteed_gpus) visit(QuotaSubject{QuotaHolder::kTeam, team.name}, team.quota);
  }
  for (const model::NamedQuota& user : organisation.of_users) {
    if (user.quota.guaranteed_gpus) visit(QuotaSubject{QuotaHolder::kUser, user.name}, user.quota);
  }
}

}  // namespace

std::uint64_t guaranteed_in_all(const model::Organisation& organisation) {
  std::uint64_t sum = 0;
  for_each_guarantee(organisation, [&](const QuotaSubject&, const model::Quota& quota) {
    sum += *quota.guaranteed_gpus;
  });
  return sum;
}

Guarantees guarantees_of(const model::Organisation& organisation, std::uint64_t cluster_gpus) {
  Guarantees guarantees;
  if (organisation.allocation == AllocationMode::kDynamic) return guarantees;
  const std::uint64_t sum = guaranteed_in_all(organisation);
  const std::uint64_t reserved = organisation.allocation == AllocationMode::kHybrid
                                     ? cluster_gpus * organisation.reserved_thousandths / 1000
                                     : sum;
  const bool is_static = organisation.allocation == AllocationMode::kStatic;
  std::uint64_t given = 0;
  for_each_guarantee(organisation, [&](QuotaSubject holder, const model::Quota& quota) {
    const std::uint64_t gpus =
        sum > reserved ? *quota.guaranteed_gpus * reserved / sum : *quota.guaranteed_gpus;
    given += gpus;
    Guarantee own{whole(gpus), std::nullopt, whole(gpus)};
    if (quota.borrow_limit) own.borrow_limit = whole(*quota.borrow_limit);
    if (quota.lend_limit) own.lend_limit = std::min(own.gpus, whole(*quota.lend_limit));
    if (is_static) {
      own.borrow_limit = base::GpuShare();
      own.lend_limit = {};
    }
    guarantees.of.emplace(std::move(holder), own);
  });
  if (cluster_gpus > given && !guarantees.empty()) guarantees.shared = whole(cluster_gpus - given);
  return guarantees;
}

QuotaSubject holder_of(const Guarantees& guarantees, const model::Organisation& organisation,
                       const model::JobSpec& spec) {
  QuotaSubject user{QuotaHolder::kUser, spec.user};
  if (guarantees.of.contains(user)) return user;
  // Once round at most: config/ refuses circles.
  const model::Team* team = spec.team.empty() ? nullptr : model::find_team(organisation, spec.team);
  for (; team != nullptr; team = model::find_team(organisation, team->parent)) {
    QuotaSubject holder{QuotaHolder::kTeam, team->name};
    if (guarantees.of.contains(holder)) return holder;
    if (team->parent.empty()) break;
  }
  return {};
}

}  // namespace gpu_platform::scheduling
