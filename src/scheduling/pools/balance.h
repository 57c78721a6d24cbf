#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/units.h"
#include "model/job.h"
#include "model/policy.h"
#include "model/quota_excess.h"
#include "scheduling/pools/guarantees.h"

// The admission rule of guarantees.
//
// With u what a holder has, f what of it cannot be stopped for others, g its guarantee, l its lend
// limit, and S what is guaranteed to nobody, sums over all holders:
//   non-preemptible work above guarantees   F = Σ max(0, f − g)            F <= S
//   all work above guarantees               E = Σ max(0, u − g)            E <= S + Σ min(l, g − u)
// A start within its holder's guarantee (u + asked <= g) is always allowed: what it needs is free,
// or held by preemptible work above some guarantee, since the rest is at most Σ g + F <= all GPUs.

namespace gpu_platform::scheduling {

// What a start would be.
enum class PoolVerdict : std::uint8_t {
  kOwn,       // within the holder's guarantee: it may have borrowers stopped
  kShared,    // above it, from what is guaranteed to no holder
  kBorrows,   // above it, of what is guaranteed to others and idle
  kKeptBack,  // more than may be had
};

struct Judgement {
  PoolVerdict verdict = PoolVerdict::kOwn;
  // Of kKeptBack: by what, and how much may be had above the guarantee, beside what is.
  model::QuotaKind limit = model::QuotaKind::kGuarantee;
  base::GpuShare most;
};

struct PoolAsk {
  QuotaSubject holder;
  base::GpuShare gpus;
  bool may_borrow = false;  // it can be stopped for others
};

PoolAsk pool_ask(const Guarantees& guarantees, const model::Policy& policy,
                 const model::JobSpec& spec);

// A value, so that a cycle may go on from the present one. Cost: O(log holders) each.
class PoolBalance {
 public:
  PoolBalance() = default;
  explicit PoolBalance(std::shared_ptr<const Guarantees> guarantees);  // not null

  bool is_active() const { return guarantees_ != nullptr && !guarantees_->empty(); }
  const Guarantees& guarantees() const { return *guarantees_; }  // of an active one

  void add(const PoolAsk& held);
  void remove(const PoolAsk& held);

  Judgement judge(const PoolAsk& asked) const;
  // What keeps it back, in words for people; nothing where nothing does.
  std::optional<model::QuotaExcess> excess_of(const PoolAsk& asked) const;

  // F and S: see above.
  base::GpuShare firm_above() const { return firm_above_; }
  base::GpuShare shared() const { return guarantees_->shared; }
  base::GpuShare firm_of(const QuotaSubject& holder) const;
  base::GpuShare guarantee_of(const QuotaSubject& holder) const;

  friend bool operator==(const PoolBalance& a, const PoolBalance& b);

 private:
  struct Use {
    base::GpuShare firm;
    base::GpuShare preemptible;
    base::GpuShare all() const { return firm + preemptible; }
    friend bool operator==(const Use&, const Use&) = default;
  };
  // What a holder with such use adds to the three sums.
  struct Sums {
    base::GpuShare firm_above;
    base::GpuShare above;
    base::GpuShare lendable;
  };
  Sums sums_of(const QuotaSubject& holder, const Use& use) const;
  Use use_of(const QuotaSubject& holder) const;
  void become(const QuotaSubject& holder, const Use& use);

  std::shared_ptr<const Guarantees> guarantees_;
  std::map<QuotaSubject, Use> uses_;  // none empty
  base::GpuShare firm_above_;         // F
  base::GpuShare above_;              // E
  base::GpuShare lendable_;           // Σ min(l, g − u)
};

}  // namespace gpu_platform::scheduling
