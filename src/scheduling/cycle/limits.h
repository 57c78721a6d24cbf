#pragma once

#include "scheduling/cycle/ground.h"
#include "scheduling/pools/balance.h"
#include "scheduling/quota/quota_ledger.h"

namespace gpu_platform::scheduling {

// The stage kQuota: who is kept back by somebody's limits or by what is guaranteed to others, with
// the starts of this cycle counted. Until it has run nobody is.
class Limits {
 public:
  explicit Limits(const Ground& ground) : ground_(ground) {}

  void run();

  // The same of all of a class, and for the rest of the cycle: nothing that it starts gives back.
  bool is_over_quota(const WaitingJob& job) const;
  // Only by limits on what runs.
  bool is_over_limits(const WaitingJob& job) const;
  // Whoever has a preemption hold was judged when it was made, and what others lend may be less by
  // now.
  bool may_have_held(const WaitingJob& job) const;
  // Above its holder's guarantee, of what is guaranteed to others.
  bool would_borrow(const WaitingJob& job) const;
  // Within its holder's guarantee, while others borrow: these may be stopped for it.
  bool may_reclaim(const WaitingJob& job) const;

  // As if it were there: others behind are judged beside it.
  void count(const WaitingJob& job);

 private:
  PoolAsk ask_of(const WaitingJob& job) const;
  bool is_kept_back_by_pools(const WaitingJob& job, bool has_hold) const;

  const Ground& ground_;
  bool keeps_limits_ = false;
  base::Shared<model::Organisation> organisation_;
  QuotaLedger added_;  // what the starts of this cycle add
  PoolBalance pools_;  // with the starts of this cycle
};

}  // namespace gpu_platform::scheduling
