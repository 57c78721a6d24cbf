#include "views/wait_explainer.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "model/job_spec.h"
#include "model/policy.h"
#include "scheduling/book_entries.h"
#include "scheduling/preemption/preemption_holds.h"
#include "scheduling/quota/budgets.h"
#include "scheduling/quota/subjects.h"
#include "views/surplus_parts.h"
#include "views/unready_reasons.h"

namespace gpu_platform::views {

namespace {

// All GPUs of an allocation are of one type.
std::string gpu_type_of(const model::Allocation& allocation,
                        const base::PersistentMap<model::Node>& nodes) {
  for (const model::NodeAllocation& part : allocation.nodes) {
    const model::Node* node = nodes.find(part.node.value);
    if (part.grants.empty() || node == nullptr) continue;
    const std::uint32_t index = part.grants.front().gpu_index;
    return index < node->gpus.size() ? node->gpus[index].info.type : std::string();
  }
  return {};
}

}  // namespace

const std::vector<model::JobId>& WaitExplainer::order() {
  if (ordered_) return order_;
  ordered_ = true;
  std::vector<scheduling::Rank> ranks;
  ranks.reserve(snapshot().counts.queued);
  snapshot().jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (job.state != model::JobState::kQueued) return;
    ranks.push_back(scheduling::rank_of(job, *snapshot().order));
  });
  std::ranges::sort(ranks);
  order_.reserve(ranks.size());
  for (const scheduling::Rank& rank : ranks) {
    position_.emplace(rank.job.value, order_.size());
    order_.push_back(rank.job);
  }
  return order_;
}

scheduling::QuotaLedger WaitExplainer::awaited_before(const scheduling::Rank* rank) const {
  scheduling::QuotaLedger awaited;
  const model::Organisation& organisation = *snapshot().policy->organisation;
  if (snapshot().holds == nullptr || !scheduling::limits_starts(organisation)) return awaited;
  for (const auto& [id, hold] : snapshot().holds->all()) {
    const model::Job* job = snapshot().jobs.find(id.value);
    if (job == nullptr) continue;
    if (rank != nullptr && *rank < scheduling::rank_of(*job, *snapshot().order)) continue;
    const auto limit = model::limit_at_speed(job->spec->time_limit, hold.allocation.speed);
    awaited.add(organisation, *job->spec, scheduling::use_of_start(*job->spec, limit),
                gpu_type_of(hold.allocation, snapshot().nodes));
  }
  return awaited;
}

std::optional<model::SurplusExcess> WaitExplainer::surplus_excess_of(const model::JobSpec& spec,
                                                                     const scheduling::Rank* rank) {
  if ((rank != nullptr && rank->is_overdue) || !books_->pools().is_active()) return std::nullopt;
  const scheduling::GpusByType& types = books_->cluster().totals().gpus_by_type();
  const auto& all_parts = books_->surplus_parts();
  if (all_parts.empty()) return std::nullopt;
  std::optional<model::SurplusExcess> found;
  for (const auto& [name, lending] : books_->pools().all()) {
    const scheduling::PoolBalance& pool = lending.balance();
    const auto ask = scheduling::pool_ask(pool.guarantees(), *snapshot().policy, spec);
    const auto verdict = pool.judge(ask).verdict;
    if (!accepts_pool(spec, books_->pools(), name, types)) continue;
    if (verdict == scheduling::PoolVerdict::kOwn) return std::nullopt;
    const auto parts = all_parts.find(name);
    std::optional<model::SurplusExcess> excess;
    if (parts != all_parts.end()) {
      excess = scheduling::surplus_excess(parts->second, pool, ask.holder);
    }
    if (!excess && verdict == scheduling::PoolVerdict::kKeptBack) continue;
    if (!excess) return std::nullopt;
    found = std::move(excess);
  }
  return found;
}

model::WaitReason WaitExplainer::explain(const model::Job& job) {
  if (job.state != model::JobState::kQueued) return explain_behind(job, 0, {});
  order();
  const auto position = position_.find(job.id.value);
  CHECK(position != position_.end());
  return explain_behind(job, position->second, order_.front());
}

model::WaitReason WaitExplainer::explain_behind(const model::Job& job, std::uint64_t jobs_ahead,
                                                model::JobId first) {
  if (job.state == model::JobState::kHeld) return explain_held(job);
  if (job.state != model::JobState::kQueued) return explain_pending(snapshot(), job);
  if (snapshot().holds != nullptr) {
    if (const model::PreemptionHold* hold = snapshot().holds->find(job.id))
      return explain_hold(snapshot(), *hold);
  }
  const scheduling::Rank rank = scheduling::rank_of(job, *snapshot().order);
  return explain_behind(*job.spec, &rank, jobs_ahead, first);
}

model::WaitReason WaitExplainer::explain_behind(const model::JobSpec& spec,
                                                std::uint64_t jobs_ahead, model::JobId first) {
  return explain_behind(spec, nullptr, jobs_ahead, first);
}

model::WaitReason WaitExplainer::explain_behind(const model::JobSpec& spec,
                                                const scheduling::Rank* rank,
                                                std::uint64_t jobs_ahead, model::JobId first) {
  model::WaitReason reason;
  reason.jobs_ahead = jobs_ahead;
  if (jobs_ahead > 0) reason.blocked_by = first;
  explain_place(spec, rank, reason);
  return reason;
}

void WaitExplainer::explain_reservation(const RequestFit& fit, model::WaitReason& reason) {
  if (!fit.in_the_way) return;
  reason.code = model::WaitCode::kReserved;
  reason.reservation = fit.in_the_way->reservation->name;
  reason.reservation_begin = fit.in_the_way->when.begin;
  reason.reservation_end = fit.in_the_way->when.end;
}

// Says what is out of service before limits and other jobs, because no end of these would help.
void WaitExplainer::explain_place(const model::JobSpec& spec, const scheduling::Rank* rank,
                                  model::WaitReason& reason) {
  if (explain_next_occurrence(snapshot(), spec, reason)) return;
  const RequestFit& fit = fits_.of(spec);
  if (fit.could_hold) {
    reason.quota =
        scheduling::budget_excess(*snapshot().budgets, *snapshot().policy, spec, snapshot().at);
    if (!reason.quota) {
      const scheduling::QuotaLedger awaited = awaited_before(rank);
      reason.quota = scheduling::excess_if_started(*snapshot().policy->organisation, spec,
                                                   books_->quotas(), &awaited);
    }
    if (!reason.quota && books_->pools().is_active() && !books_->pools().is_by_type()) {
      const scheduling::PoolBalance& pool = books_->pools().all().begin()->second.balance();
      const auto ask = scheduling::pool_ask(pool.guarantees(), *snapshot().policy, spec);
      reason.quota = pool.excess_of(ask);
      if (reason.quota) reason.surplus = surplus_excess_of(spec, rank);
    }
  }
  if (reason.quota) {
    reason.code = model::WaitCode::kQuota;
    return;
  }
  const bool has_types =
      scheduling::limits_types(*snapshot().policy->organisation) || books_->pools().is_by_type();
  if (fit.could_hold && has_types) return explain_types(spec, rank, reason);
  explain_free(spec, rank, reason);
}

// Limits and guarantees by type leave it other types, or none that could hold it.
void WaitExplainer::explain_types(const model::JobSpec& spec, const scheduling::Rank* rank,
                                  model::WaitReason& reason) {
  const scheduling::QuotaLedger awaited = awaited_before(rank);
  scheduling::BarredTypes barred = scheduling::barred_types(
      *snapshot().policy->organisation, spec, books_->cluster().totals().gpus_by_type(),
      books_->quotas(), &awaited);
  if (books_->pools().is_by_type()) {
    scheduling::bar_kept_back(books_->pools(), *snapshot().policy, spec,
                              books_->cluster().totals().gpus_by_type(), barred);
  }
  if (barred.types.empty()) return explain_free(spec, rank, reason);
  reason.quota = std::move(barred.excess);
  model::JobSpec rest = spec;
  rest.request.barred_types = std::move(barred.types);
  if (fits_.of(rest).could_hold) return explain_free(rest, rank, reason);
  reason.surplus = surplus_excess_of(spec, rank);
  reason.code = model::WaitCode::kQuota;
}

void WaitExplainer::explain_free(const model::JobSpec& spec, const scheduling::Rank* rank,
                                 model::WaitReason& reason) {
  const RequestFit& fit = fits_.of(spec);
  reason.surplus = surplus_excess_of(spec, rank);
  reason.counts = fit.counts;
  reason.nodes_needed = fit.parts;
  reason.gpus_per_node = fit.gpus;
  reason.within = spec.request.within;
  if (!fit.fits) {
    reason.code = fit.could_hold ? model::WaitCode::kNoCapacity : model::WaitCode::kNoNode;
    return explain_reservation(fit, reason);
  }
  if (const auto kept = kept_places_.kept_from(spec, rank, reason.surplus.has_value())) {
    reason.kept_for = kept->job;
    reason.kept_until = kept->until;
  }
  const bool is_behind = reason.jobs_ahead > 0 || reason.kept_for.valid();
  reason.code = is_behind ? model::WaitCode::kPriority : model::WaitCode::kNotEvaluated;
}

}  // namespace gpu_platform::views
