#include "scheduling/pools/guarantees.h"
#include "model/job_spec.h"

#include <algorithm>

#include <fmt/format.h>

namespace gpu_platform::scheduling {

namespace {

using model::AllocationMode;
using model::QuotaHolder;

base::GpuShare whole(std::uint64_t gpus) {
  return base::kWholeGpu * static_cast<std::int64_t>(gpus);
}

// A guarantee of a holder in one pool, as it is written.
struct Written {
  std::uint64_t gpus = 0;
  std::optional<std::uint32_t> borrow_limit;
  std::optional<std::uint32_t> lend_limit;
  std::optional<std::uint32_t> max_gpus;
  std::optional<std::uint32_t> weight;  // among those that want more
};

// Of guaranteed_gpus, the common pool has what is not guaranteed by type.
template <class Visit>
void for_each_of(const QuotaSubject& holder, const model::Quota& quota, const Visit& visit) {
  std::uint64_t by_type = 0;
  for (const model::TypeQuota& each : quota.gpu_types) {
    if (!each.guaranteed_gpus) continue;
    by_type += *each.guaranteed_gpus;
    visit(holder, each.type,
          Written{*each.guaranteed_gpus, each.borrow_limit, each.lend_limit, each.max_gpus,
                  quota.over_quota_weight});
  }
  if (!quota.guaranteed_gpus) return;
  const std::uint64_t all = *quota.guaranteed_gpus;
  visit(holder, std::string(),
        Written{all > by_type ? all - by_type : 0, quota.borrow_limit, quota.lend_limit,
                quota.max_gpus, quota.over_quota_weight});
}

template <class Visit>
void for_each_guarantee(const model::Organisation& organisation, const Visit& visit) {
  for (const model::Team& team : organisation.teams) {
    for_each_of({QuotaHolder::kTeam, team.name}, team.quota, visit);
  }
  for (const model::NamedQuota& user : organisation.of_users) {
    for_each_of({QuotaHolder::kUser, user.name}, user.quota, visit);
  }
}

}  // namespace

ByPool<PoolSize> pool_sizes(const model::Organisation& organisation,
                            const GpusByType& gpus_by_type) {
  ByPool<PoolSize> pools;
  for_each_guarantee(organisation,
                     [&](const QuotaSubject&, const std::string& pool, const Written& written) {
                       pools[pool].guaranteed += written.gpus;
                     });
  if (pools.empty()) return pools;
  for (const auto& [type, gpus] : gpus_by_type) {
    if (const std::string* pool = pool_of_type(pools, type)) pools[*pool].gpus += gpus;
  }
  return pools;
}

std::vector<std::string> unmet_guarantees(const model::Organisation& organisation,
                                          const GpusByType& found) {
  const bool is_as_written = organisation.allocation == AllocationMode::kGuaranteed ||
                             organisation.allocation == AllocationMode::kStatic;
  std::vector<std::string> sentences;
  if (!is_as_written) return sentences;
  const ByPool<PoolSize> pools = pool_sizes(organisation, found);
  for (const auto& [type, pool] : pools) {
    if (pool.guaranteed <= pool.gpus) continue;
    std::string which = type.empty() ? "" : " of type " + type;
    if (type.empty() && pools.size() > 1) which = " of the types without guarantees of their own";
    sentences.push_back(
        fmt::format("guaranteed_gpus add up to {} GPUs{}, but {} were found: not all guarantees "
                    "can be met at once",
                    pool.guaranteed, which, pool.gpus));
  }
  return sentences;
}

ByPool<Guarantees> guarantees_of(const model::Organisation& organisation,
                                 const GpusByType& gpus_by_type) {
  ByPool<Guarantees> pools;
  if (organisation.allocation == AllocationMode::kDynamic) return pools;
  const ByPool<PoolSize> sizes = pool_sizes(organisation, gpus_by_type);
  const bool is_hybrid = organisation.allocation == AllocationMode::kHybrid;
  const bool is_static = organisation.allocation == AllocationMode::kStatic;
  ByPool<std::uint64_t> given;
  for_each_guarantee(organisation, [&](const QuotaSubject& holder, const std::string& pool,
                                       const Written& written) {
    const PoolSize& size = sizes.find(pool)->second;
    const std::uint64_t reserved =
        is_hybrid ? size.gpus * organisation.reserved_thousandths / 1000 : size.guaranteed;
    const std::uint64_t gpus =
        size.guaranteed > reserved ? written.gpus * reserved / size.guaranteed : written.gpus;
    given[pool] += gpus;
    Guarantee own{whole(gpus), std::nullopt, whole(gpus)};
    if (written.borrow_limit) own.borrow_limit = whole(*written.borrow_limit);
    if (written.lend_limit) own.lend_limit = std::min(own.gpus, whole(*written.lend_limit));
    if (is_static) {
      own.borrow_limit = base::GpuShare();
      own.lend_limit = {};
    }
    if (written.max_gpus) own.max_gpus = whole(*written.max_gpus);
    own.weight = written.weight.value_or(1);
    Guarantees& all = pools[pool];
    all.has_weights = all.has_weights || written.weight;
    all.of.emplace(holder, own);
  });
  for (auto& [name, pool] : pools) {
    const std::uint64_t all = sizes.find(name)->second.gpus;
    if (all > given[name]) pool.shared = whole(all - given[name]);
  }
  return pools;
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
