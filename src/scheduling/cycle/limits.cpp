#include "scheduling/cycle/limits.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "model/job_spec.h"
#include "scheduling/placement/place.h"
#include "scheduling/quota/budgets.h"
#include "scheduling/quota/subjects.h"

namespace gpu_platform::scheduling {

namespace {

WaitingJob without_types(const WaitingJob& job, std::vector<std::string> types) {
  WaitingJob copy = job;
  model::JobSpec spec = *job.spec;
  auto& barred = spec.request.barred_types;
  barred.insert(barred.end(), types.begin(), types.end());
  copy.spec = std::make_shared<const model::JobSpec>(std::move(spec));
  return copy;
}

bool asks_for_gpus(const WaitingJob& job) {
  return model::total_gpus(job.spec->request) > 0;
}

}  // namespace

void Limits::run() {
  organisation_ = cycle_.policy.organisation;
  keeps_limits_ = limits_starts(*organisation_);
  keeps_types_ = limits_types(*organisation_);
  has_spent_budgets_ = bars_starts(*cycle_.books->budgets, cycle_.options.now);
  const Pools& lending = cycle_.books->lending;
  has_type_pools_ = lending.is_by_type();
  for (const auto& [name, of] : lending.all())
    pools_.emplace(name, Pool{of.balance(), &of.balance(), {}});
  if (has_type_pools_) {
    for (const auto& [type, gpus] : cycle_.books->cluster.totals().gpus_by_type()) {
      if (const std::string* pool = pool_of_type(pools_, type)) {
        pools_.find(*pool)->second.types.push_back(type);
      }
    }
  }
  for (auto& [name, pool] : pools_) {
    if (pool.balance.guarantees().has_weights) pool.parts = parts_with(nullptr, pool);
  }
}

bool Limits::is_for(const WaitingJob& job, const Pool& pool) const {
  return !has_type_pools_ || std::ranges::any_of(pool.types, [&](const std::string& type) {
    return accepts_type(job.spec->request, type);
  });
}

// A job that accepts GPUs of several pools waits for those of each. What a start takes from the
// waiting jobs it adds to what is held, so the parts stay the same.
SurplusParts Limits::parts_with(const WaitingJob* extra, const Pool& pool) const {
  WaitingGpus waiting;
  const auto add = [&](const WaitingJob& job, std::size_t count) {
    if (!is_for(job, pool)) return;
    const PoolAsk ask = ask_of(job, pool.balance, has_others_stopped(job));
    waiting[ask.holder] += ask.gpus * static_cast<std::int64_t>(count);
  };
  cycle_.queue.classes().for_each_class(
      [&](const Rank& first, std::size_t count) { add(cycle_.queue.find(first), count); });
  if (extra != nullptr) add(*extra, 1);
  return surplus_parts(*pool.begun, waiting);
}

bool Limits::is_above_share(const WaitingJob& job, const Pool& pool, const PoolAsk& ask) const {
  if (pool.parts.empty() || job.overdue_since.is_set() || has_others_stopped(job)) return false;
  if (cycle_.queue.contains(job.id)) {
    return surplus_excess(pool.parts, pool.balance, ask.holder).has_value();
  }
  return surplus_excess(parts_with(&job, pool), pool.balance, ask.holder).has_value();
}

bool Limits::is_barred(const WaitingJob& job) const {
  return has_spent_budgets_ && budget_in_the_way(*cycle_.books->budgets, *organisation_, *job.spec,
                                                 cycle_.options.now) != nullptr;
}

bool Limits::is_over_limits(const WaitingJob& job) const {
  if (is_barred(job)) return true;
  return keeps_limits_ &&
         excess_if_started(*organisation_, *job.spec, cycle_.books->quotas, &added_);
}

bool Limits::is_over_limits(const WaitingJob& job, const model::Allocation& allocation) const {
  if (is_barred(job)) return true;
  if (!keeps_limits_) return false;
  const QuotaLedger& held = cycle_.books->quotas;
  return excess_if_started(*organisation_, *job.spec, held, &added_) ||
         excess_on_type(*organisation_, *job.spec, type_of(allocation), held, &added_);
}

const WaitingJob* Limits::narrowed(const WaitingJob& job, Purpose purpose) {
  const bool is_for_lent =
      purpose == Purpose::kLoan || purpose == Purpose::kLast || purpose == Purpose::kReclaim;
  if (is_for_lent && (pools_.empty() || !asks_for_gpus(job))) return nullptr;
  const bool is_in_one = !pools_.empty() && !has_type_pools_;
  if (is_in_one && !serves(job, pools_.begin()->second, purpose)) return nullptr;
  std::vector<std::string> types = types_barred_for(job, purpose);
  if (types.empty()) return is_for_lent && !is_in_one && !accepts_some(job) ? nullptr : &job;
  WaitingJob rest = without_types(job, std::move(types));
  if (!some_node_up_could_hold(cycle_.trial.cluster(), rest.spec->request)) return nullptr;
  WaitingJob& kept = narrowed_.at(static_cast<std::size_t>(purpose));
  kept = std::move(rest);
  return &kept;
}

bool Limits::accepts_some(const WaitingJob& job) const {
  return std::ranges::any_of(
      cycle_.books->cluster.totals().gpus_by_type(),
      [&](const auto& of_type) { return accepts_type(job.spec->request, of_type.first); });
}

std::vector<std::string> Limits::types_barred_for(const WaitingJob& job, Purpose purpose) const {
  if ((!keeps_types_ && !has_type_pools_) || job.spec->request.gpus == 0) return {};
  const GpusByType& all = cycle_.books->cluster.totals().gpus_by_type();
  std::vector<std::string> barred =
      barred_types(*organisation_, *job.spec, all, cycle_.books->quotas, &added_).types;
  if (!has_type_pools_) return barred;
  const auto bar = [&](const std::string& type) {
    const bool is_known = std::ranges::find(barred, type) != barred.end();
    if (!is_known && accepts_type(job.spec->request, type)) barred.push_back(type);
  };
  for (const auto& [name, pool] : pools_) {
    if (!serves(job, pool, purpose)) std::ranges::for_each(pool.types, bar);
  }
  // No rule of guarantees applies to the other types: they are never lent.
  if (pools_.contains("") || purpose == Purpose::kTurn || purpose == Purpose::kStops) return barred;
  for (const auto& [type, gpus] : all) {
    if (pool_of_type(pools_, type) == nullptr) bar(type);
  }
  return barred;
}

std::string_view Limits::type_of(const model::Allocation& allocation) const {
  if (!keeps_types_ && !has_type_pools_) return {};
  const Cluster& cluster = cycle_.trial.cluster();
  for (const model::NodeAllocation& part : allocation.nodes) {
    const Cluster::NodeRecord* record = cluster.find(part.node);
    if (record == nullptr || part.grants.empty()) continue;
    for (const GpuPool& pool : record->shape_class->pools) {
      if ((pool.gpus & gpus_of(part)) != 0) return cluster.types().name_of(pool.type);
    }
  }
  return {};
}

const std::string* Limits::pool_of(const model::Allocation& allocation) const {
  if (pools_.empty()) return nullptr;
  return has_type_pools_ ? pool_of_type(pools_, type_of(allocation)) : &pools_.begin()->first;
}

bool Limits::may_have_held(const WaitingJob& job, const model::Allocation& allocation) const {
  if (is_over_limits(job, allocation)) return false;
  const std::string* name = pool_of(allocation);
  if (name == nullptr) return true;
  const PoolBalance& pool = pools_.find(*name)->second.balance;
  const Judgement found = pool.judge(ask_of(job, pool, has_others_stopped(job)));
  return found.verdict != PoolVerdict::kKeptBack || found.limit == model::QuotaKind::kLendLimit;
}

bool Limits::serves(const WaitingJob& job, const Pool& pool, Purpose purpose) const {
  const PoolAsk ask = ask_of(job, pool.balance, has_others_stopped(job));
  const PoolVerdict verdict = pool.balance.judge(ask).verdict;
  if (verdict == PoolVerdict::kOwn) {
    return purpose == Purpose::kTurn || purpose == Purpose::kStops || purpose == Purpose::kReclaim;
  }
  if (verdict == PoolVerdict::kKeptBack || purpose == Purpose::kReclaim) return false;
  if (is_above_share(job, pool, ask)) return purpose == Purpose::kLast;
  switch (purpose) {
    case Purpose::kTurn:
      return verdict == PoolVerdict::kShared;
    case Purpose::kLoan:
      return verdict == PoolVerdict::kBorrows;
    case Purpose::kStops:
      return verdict == PoolVerdict::kShared && !ask.may_borrow;
    default:
      return false;
  }
}

VictimIndex::PoolNames Limits::pools_to_reclaim_in(const WaitingJob& job) const {
  VictimIndex::PoolNames names;
  if (pools_.empty() || !cycle_.books->victims.has_borrowed() || !asks_for_gpus(job)) return names;
  const auto is_accepted = [&](const std::string& type) {
    return accepts_type(job.spec->request, type);
  };
  for (const auto& [name, pool] : pools_) {
    if (has_type_pools_ && std::ranges::none_of(pool.types, is_accepted)) continue;
    if (serves(job, pool, Purpose::kReclaim)) names.push_back(name);
  }
  return names;
}

bool Limits::may_have_others_stopped(const WaitingJob& job,
                                     const model::Allocation& allocation) const {
  const std::string* name = pool_of(allocation);
  return name == nullptr || serves(job, pools_.find(*name)->second, Purpose::kStops);
}

void Limits::count(const WaitingJob& job, const model::Allocation& allocation) {
  count(job, allocation, has_others_stopped(job));
}

void Limits::count_beneficiary(const WaitingJob& job, const model::Allocation& allocation) {
  count(job, allocation, true);
}

void Limits::count(const WaitingJob& job, const model::Allocation& allocation,
                   bool had_others_stopped) {
  if (keeps_limits_) {
    const auto limit = model::limit_at_speed(job.spec->time_limit, allocation.speed);
    added_.add(*organisation_, *job.spec, use_of_start(*job.spec, limit), type_of(allocation));
  }
  const std::string* name = pool_of(allocation);
  if (name == nullptr) return;
  PoolBalance& pool = pools_.find(*name)->second.balance;
  pool.add(ask_of(job, pool, had_others_stopped));
}

// By what it will be when it starts: others are stopped for a job that has a preemption hold.
bool Limits::has_others_stopped(const WaitingJob& job) const {
  return job.had_others_stopped || cycle_.books->holds.find(job.id) != nullptr;
}

PoolAsk Limits::ask_of(const WaitingJob& job, const PoolBalance& pool,
                       bool had_others_stopped) const {
  return pool_ask(pool.guarantees(), cycle_.policy, *job.spec,
                  {job.preemptions, had_others_stopped});
}

}  // namespace gpu_platform::scheduling
