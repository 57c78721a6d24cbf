#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scheduling/cycle/cycle_state.h"
#include "scheduling/pools/pools.h"
#include "scheduling/pools/surplus.h"
#include "scheduling/preemption/victim_index.h"
#include "scheduling/quota/quota_ledger.h"

namespace gpu_platform::scheduling {

// What a job is to have GPUs for. Guarantees decide which pools may give it some.
enum class Purpose : std::uint8_t {
  kTurn,     // in its turn: within its holder's guarantee, or guaranteed to no holder
  kLoan,     // after all others: guaranteed to others, and lent
  kLast,     // after these: above the holder's share of the GPUs beyond guarantees (surplus.h)
  kStops,    // others are stopped for it, by class or as overdue: it could not be reclaimed there
  kReclaim,  // borrowers are stopped for it: within its holder's guarantee
};
inline constexpr std::size_t kPurposes = 5;

// The stage kQuota: says which jobs are kept back by a limit, or by what is guaranteed to others,
// with the starts of this cycle counted. Until it has run, no job is kept back.
class Limits {
 public:
  explicit Limits(const CycleState& cycle) : cycle_(cycle) {}

  void run();

  // Checks only the limits that do not depend on the type of its GPUs, and the budgets.
  bool is_over_limits(const WaitingJob& job) const;
  // Checks all limits, if it gets the allocation.
  bool is_over_limits(const WaitingJob& job, const model::Allocation& allocation) const;
  // Returns the job without the GPU types that limits and guarantees keep it from: the job itself
  // if there are none, null if no node that is up could hold the rest. The pointer holds until the
  // next call for the same purpose.
  const WaitingJob* narrowed(const WaitingJob& job, Purpose purpose);
  // A job with a preemption hold was judged when the hold was made. The GPUs that others lend may
  // be fewer now.
  bool may_have_held(const WaitingJob& job, const model::Allocation& allocation) const;
  // Returns the pools in which the job is within its holder's guarantee while others borrow: these
  // may be stopped for it.
  VictimIndex::PoolNames pools_to_reclaim_in(const WaitingJob& job) const;
  // It could not be reclaimed in turn: it would be within its holder's guarantee, or cannot be
  // stopped.
  bool may_have_others_stopped(const WaitingJob& job, const model::Allocation& allocation) const;

  // Counts the job as if it had started there: the jobs behind it are judged beside it.
  void count(const WaitingJob& job, const model::Allocation& allocation);
  // The same for one that others are stopped for.
  void count_beneficiary(const WaitingJob& job, const model::Allocation& allocation);

 private:
  // A pool with the starts of this cycle, and its types of the cluster.
  struct Pool {
    PoolBalance balance;
    const PoolBalance* begun = nullptr;  // the balance as the cycle began, of the books
    std::vector<std::string> types;
    SurplusParts parts = {};  // as the cycle began; empty: they are not shared by weight
  };

  bool has_others_stopped(const WaitingJob& job) const;
  bool serves(const WaitingJob& job, const Pool& pool, Purpose purpose) const;
  // Returns whether the holder has its share of the pool's GPUs beyond guarantees while it wants
  // more. Never of overdue jobs and of those that others are stopped for. Once it is so, it is so
  // for the rest of the cycle.
  bool is_above_share(const WaitingJob& job, const Pool& pool, const PoolAsk& ask) const;
  SurplusParts parts_with(const WaitingJob* extra, const Pool& pool) const;
  bool is_for(const WaitingJob& job, const Pool& pool) const;  // it accepts GPUs of the pool
  PoolAsk ask_of(const WaitingJob& job, const PoolBalance& pool, bool had_others_stopped) const;
  // Returns the name of the pool it is in; null if nothing in that is guaranteed.
  const std::string* pool_of(const model::Allocation& allocation) const;
  void count(const WaitingJob& job, const model::Allocation& allocation, bool had_others_stopped);
  bool accepts_some(const WaitingJob& job) const;  // of the types in the cluster
  std::vector<std::string> types_barred_for(const WaitingJob& job, Purpose purpose) const;
  std::string_view type_of(const model::Allocation& allocation) const;  // where types count

  bool is_barred(const WaitingJob& job) const;  // by a budget

  const CycleState& cycle_;
  bool has_spent_budgets_ = false;
  bool keeps_limits_ = false;
  bool keeps_types_ = false;     // some limit is by type
  bool has_type_pools_ = false;  // some guarantee is
  base::Shared<model::Organisation> organisation_;
  QuotaLedger added_;  // what the starts of this cycle add
  ByPool<Pool> pools_;
  std::array<WaitingJob, kPurposes> narrowed_;
};

}  // namespace gpu_platform::scheduling
