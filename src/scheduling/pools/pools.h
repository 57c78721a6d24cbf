#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/job.h"
#include "model/policy.h"
#include "model/quota_excess.h"
#include "scheduling/pools/lending.h"
#include "scheduling/quota/quota_ledger.h"

namespace gpu_platform::scheduling {

// The lending of each pool. Pools share no GPUs, so what is guaranteed, lent and taken back in one
// of them never depends on another. An attempt is in the pool of the GPUs that it holds, which are
// all of one type. A waiting job that accepts several types has a verdict in each of their pools.
//
// Ownership: values. Thread: one owner. Cost: as Lending, and the number of pools by type.
class Pools {
 public:
  Pools() = default;
  explicit Pools(ByPool<Guarantees> guarantees);

  bool is_active() const { return !pools_.empty(); }
  // Returns whether types are told apart; if not, there is at most the common pool.
  bool is_by_type() const {
    return pools_.size() > 1 || (is_active() && !pools_.begin()->first.empty());
  }
  const ByPool<Lending>& all() const { return pools_; }
  // Returns the pool that GPUs of the type are in; null if nothing in it is guaranteed.
  const ByPool<Lending>::value_type* of_type(std::string_view gpu_type) const;
  std::uint64_t borrowed() const;  // attempts
  ByPool<Guarantees> guarantees() const;

  // These do what those of Lending do.
  Lending::Changes add(const Lending::Held& held);
  Lending::Changes remove(const Lending::Held& held);

  // Returns the excess with the types of GPUs that count in the pool.
  model::QuotaExcess named(model::QuotaExcess excess, std::string_view pool) const;

  friend bool operator==(const Pools&, const Pools&) = default;

 private:
  ByPool<Lending> pools_;  // of those that have a guarantee
};

// Adds the types of GPUs that guarantees keep the job from now, of those that it accepts. `only`:
// for reasons of this kind alone.
void bar_kept_back(const Pools& pools, const model::Policy& policy, const model::JobSpec& spec,
                   const GpusByType& gpus_by_type, BarredTypes& barred,
                   std::optional<model::QuotaKind> only = {});

}  // namespace gpu_platform::scheduling
