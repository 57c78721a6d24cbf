#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/units.h"
#include "model/job.h"
#include "model/policy.h"
#include "model/quota_excess.h"
#include "scheduling/pools/guarantees.h"
#include "scheduling/preemption/stop_record.h"

// The admission rule of guarantees.
//
// Let u be what a holder has, f the part of it that cannot be stopped for others, g its guarantee,
// l its lend limit, and S the GPUs that are guaranteed to no holder. The sums are over all holders:
//   non-preemptible work above guarantees   F = Σ max(0, f − g)            F <= S
//   all work above guarantees               E = Σ max(0, u − g)            E <= S + Σ min(l, g − u)
// A start within its holder's guarantee (u + asked <= g) is always allowed: what it needs is free,
// or held by preemptible work above some guarantee, since the rest is at most Σ g + F <= all GPUs.
// Jobs that were stopped too often to be stopped again count in f, and may yet start beyond F <= S:
// until they end, that promise is less by so much, and no other such work starts.

namespace gpu_platform::scheduling {

// The rule's verdict on a start.
enum class PoolVerdict : std::uint8_t {
  kOwn,       // within the holder's guarantee: it may have borrowers stopped
  kShared,    // above it, from what is guaranteed to no holder
  kBorrows,   // above it, of what is guaranteed to others and idle; no job is stopped for it
  kKeptBack,  // more than may be had
};

struct Judgement {
  PoolVerdict verdict = PoolVerdict::kOwn;
  // Set with kKeptBack: the limit, and how much may be held above the guarantee, beside what is.
  model::QuotaKind limit = model::QuotaKind::kGuarantee;
  base::GpuShare most;
};

struct PoolAsk {
  QuotaSubject holder;
  base::GpuShare gpus;
  bool may_borrow = false;  // it can be reclaimed
  // It could be, had it not been stopped so often before: it counts as work that cannot be stopped,
  // but it may have what others lend.
  bool is_spared = false;
};

PoolAsk pool_ask(const Guarantees& guarantees, const model::Policy& policy,
                 const model::JobSpec& spec, const StopRecord& record = {});

// Returns thousandths of a GPU, rounded up.
std::uint64_t thousandths_of(base::GpuShare gpus);

// A value, so that a cycle can continue from the present one. Cost: O(log holders) each.
class PoolBalance {
 public:
  PoolBalance() = default;
  explicit PoolBalance(std::shared_ptr<const Guarantees> guarantees);  // not null

  bool is_active() const { return guarantees_ != nullptr && !guarantees_->empty(); }
  const Guarantees& guarantees() const { return *guarantees_; }  // of an active one

  void add(const PoolAsk& held);
  void remove(const PoolAsk& held);

  Judgement judge(const PoolAsk& asked) const;
  // Returns what keeps it back, in words for people; nothing if nothing does.
  std::optional<model::QuotaExcess> excess_of(const PoolAsk& asked) const;

  // F and S: see above.
  base::GpuShare firm_above() const { return firm_above_; }
  base::GpuShare shared() const { return guarantees_->shared; }
  base::GpuShare firm_of(const QuotaSubject& holder) const;
  base::GpuShare guarantee_of(const QuotaSubject& holder) const;
  base::GpuShare held_by(const QuotaSubject& holder) const { return use_of(holder).all(); }

  friend bool operator==(const PoolBalance& a, const PoolBalance& b);

 private:
  struct Use {
    base::GpuShare firm;
    base::GpuShare preemptible;
    base::GpuShare all() const { return firm + preemptible; }
    friend bool operator==(const Use&, const Use&) = default;
  };
  // The amounts that a holder with such use adds to the three sums.
  struct Sums {
    base::GpuShare firm_above;
    base::GpuShare above;
    base::GpuShare lendable;
  };
  Sums sums_of(const QuotaSubject& holder, const Use& use) const;
  Use use_of(const QuotaSubject& holder) const;
  void become(const QuotaSubject& holder, const Use& use);
  std::string guaranteed_to_others(const QuotaSubject& holder) const;

  std::shared_ptr<const Guarantees> guarantees_;
  std::map<QuotaSubject, Use> uses_;  // none empty
  base::GpuShare firm_above_;         // F
  base::GpuShare above_;              // E
  base::GpuShare lendable_;           // Σ min(l, g − u)
};

}  // namespace gpu_platform::scheduling
