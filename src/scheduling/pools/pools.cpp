#include "scheduling/pools/pools.h"
#include "model/job_spec.h"

#include <algorithm>
#include <utility>

namespace gpu_platform::scheduling {

Pools::Pools(ByPool<Guarantees> guarantees) {
  for (auto& [name, of] : guarantees) pools_.emplace(name, Lending(std::move(of)));
}

const ByPool<Lending>::value_type* Pools::of_type(std::string_view gpu_type) const {
  const std::string* pool = pool_of_type(pools_, gpu_type);
  return pool == nullptr ? nullptr : &*pools_.find(*pool);
}

std::uint64_t Pools::borrowed() const {
  std::uint64_t sum = 0;
  for (const auto& [name, lending] : pools_) sum += lending.borrowed();
  return sum;
}

ByPool<Guarantees> Pools::guarantees() const {
  ByPool<Guarantees> found;
  for (const auto& [name, lending] : pools_) found.emplace(name, lending.balance().guarantees());
  return found;
}

Lending::Changes Pools::add(const Lending::Held& held) {
  const auto pool = pools_.find(held.pool);
  return pool == pools_.end() ? Lending::Changes() : pool->second.add(held);
}

Lending::Changes Pools::remove(const Lending::Held& held) {
  const auto pool = pools_.find(held.pool);
  return pool == pools_.end() ? Lending::Changes() : pool->second.remove(held);
}

model::QuotaExcess Pools::named(model::QuotaExcess excess, std::string_view pool) const {
  excess.gpu_type = pool;
  if (!pool.empty()) return excess;
  for (const auto& [name, lending] : pools_) {
    if (!name.empty()) excess.but_types += (excess.but_types.empty() ? "" : ", ") + name;
  }
  return excess;
}

void bar_kept_back(const Pools& pools, const model::Policy& policy, const model::JobSpec& spec,
                   const GpusByType& gpus_by_type, BarredTypes& barred,
                   std::optional<model::QuotaKind> only) {
  for (const auto& [type, gpus] : gpus_by_type) {
    const bool is_known = std::ranges::find(barred.types, type) != barred.types.end();
    const auto* pool = pools.of_type(type);
    if (pool == nullptr || is_known || !accepts_type(spec.request, type)) continue;
    const PoolBalance& balance = pool->second.balance();
    auto excess = balance.excess_of(pool_ask(balance.guarantees(), policy, spec));
    if (!excess || (only && excess->kind != *only)) continue;
    barred.types.push_back(type);
    if (!barred.excess) barred.excess = pools.named(*std::move(excess), pool->first);
  }
}

}  // namespace gpu_platform::scheduling
