#include "scheduling/cycle/limits.h"

#include "scheduling/quota/subjects.h"

namespace gpu_platform::scheduling {

void Limits::run() {
  organisation_ = ground_.policy.organisation;
  keeps_limits_ = limits_starts(*organisation_);
  pools_ = ground_.books->lending.balance();
}

bool Limits::is_over_quota(const WaitingJob& job) const {
  return is_over_limits(job) || is_kept_back_by_pools(job, false);
}

bool Limits::is_over_limits(const WaitingJob& job) const {
  return keeps_limits_ &&
         excess_if_started(*organisation_, *job.spec, ground_.books->quotas, &added_).has_value();
}

bool Limits::may_have_held(const WaitingJob& job) const {
  return !is_over_limits(job) && !is_kept_back_by_pools(job, true);
}

bool Limits::is_kept_back_by_pools(const WaitingJob& job, bool has_hold) const {
  if (!pools_.is_active()) return false;
  const Judgement found = pools_.judge(ask_of(job));
  const bool is_of_lending = found.limit == model::QuotaKind::kLendLimit;
  return found.verdict == PoolVerdict::kKeptBack && !(has_hold && is_of_lending);
}

bool Limits::would_borrow(const WaitingJob& job) const {
  return pools_.is_active() && pools_.judge(ask_of(job)).verdict == PoolVerdict::kBorrows;
}

bool Limits::may_reclaim(const WaitingJob& job) const {
  return pools_.is_active() && ground_.books->victims.has_borrowed() &&
         model::total_gpus(job.spec->request) > 0 &&
         pools_.judge(ask_of(job)).verdict == PoolVerdict::kOwn;
}

void Limits::count(const WaitingJob& job) {
  if (keeps_limits_) added_.add(*organisation_, *job.spec, use_of_start(*job.spec));
  if (pools_.is_active()) pools_.add(ask_of(job));
}

PoolAsk Limits::ask_of(const WaitingJob& job) const {
  return pool_ask(pools_.guarantees(), ground_.policy, *job.spec);
}

}  // namespace gpu_platform::scheduling
