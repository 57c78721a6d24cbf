#include "views/wait_explainer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "scheduling/backfill/timeline.h"
#include "scheduling/book_entries.h"
#include "scheduling/explain/shortages.h"
#include "scheduling/gang/place_gang.h"
#include "scheduling/order/rank.h"
#include "scheduling/placement/place.h"
#include "scheduling/quota/subjects.h"
#include "views/surplus_parts.h"

namespace gpu_platform::views {

namespace {

model::WaitCode code_of(model::Hold hold) {
  if (hold == model::Hold::kByAdministrator) return model::WaitCode::kHeldByAdministrator;
  return hold == model::Hold::kByPlatform ? model::WaitCode::kHeldByPlatform
                                          : model::WaitCode::kHeldByUser;
}

}  // namespace

WaitExplainer::WaitExplainer(std::shared_ptr<const controller::Snapshot> snapshot)
    : snapshot_(std::move(snapshot)) {}

const std::vector<model::JobId>& WaitExplainer::order() {
  if (ordered_) return order_;
  ordered_ = true;
  std::vector<scheduling::Rank> ranks;
  ranks.reserve(snapshot_->counts.queued);
  snapshot_->jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (job.state != model::JobState::kQueued) return;
    ranks.push_back(scheduling::rank_of(job, *snapshot_->order));
  });
  std::ranges::sort(ranks);
  order_.reserve(ranks.size());
  for (const scheduling::Rank& rank : ranks) {
    position_.emplace(rank.job.value, order_.size());
    order_.push_back(rank.job);
  }
  return order_;
}

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

const scheduling::QuotaLedger& WaitExplainer::quotas() {
  if (!quotas_) {
    quotas_ = scheduling::quotas_of(snapshot_->jobs, *snapshot_->policy->organisation,
                                    *snapshot_->period_use);
  }
  return *quotas_;
}

scheduling::QuotaLedger WaitExplainer::awaited_before(const scheduling::Rank* rank) const {
  scheduling::QuotaLedger awaited;
  const model::Organisation& organisation = *snapshot_->policy->organisation;
  if (snapshot_->holds == nullptr || !scheduling::limits_starts(organisation)) return awaited;
  for (const auto& [id, hold] : snapshot_->holds->all()) {
    const model::Job* job = snapshot_->jobs.find(id.value);
    if (job == nullptr) continue;
    if (rank != nullptr && *rank < scheduling::rank_of(*job, *snapshot_->order)) continue;
    const auto limit = model::limit_at_speed(job->spec->time_limit, hold.allocation.speed);
    awaited.add(organisation, *job->spec, scheduling::use_of_start(*job->spec, limit),
                gpu_type_of(hold.allocation, snapshot_->nodes));
  }
  return awaited;
}

const scheduling::Pools& WaitExplainer::pools() {
  if (!pools_) {
    pools_ = scheduling::guarantees_anything(*snapshot_->policy->organisation)
                 ? scheduling::lending_of(snapshot_->jobs, *snapshot_->policy,
                                          cluster().totals().gpus_by_type())
                 : scheduling::Pools();
  }
  return *pools_;
}

std::optional<model::SurplusExcess> WaitExplainer::surplus_excess_of(const model::JobSpec& spec,
                                                                     const scheduling::Rank* rank) {
  if ((rank != nullptr && rank->is_overdue) || !pools().is_active()) return std::nullopt;
  const scheduling::GpusByType& types = cluster().totals().gpus_by_type();
  if (!parts_) parts_ = surplus_parts_of(*snapshot_, pools(), types);
  if (parts_->empty()) return std::nullopt;
  std::optional<model::SurplusExcess> found;
  for (const auto& [name, lending] : pools().all()) {
    const scheduling::PoolBalance& pool = lending.balance();
    const auto ask = scheduling::pool_ask(pool.guarantees(), *snapshot_->policy, spec);
    const auto verdict = pool.judge(ask).verdict;
    if (!accepts_pool(spec, pools(), name, types)) continue;
    if (verdict == scheduling::PoolVerdict::kOwn) return std::nullopt;
    const auto parts = parts_->find(name);
    std::optional<model::SurplusExcess> excess;
    if (parts != parts_->end()) {
      excess = scheduling::surplus_excess(parts->second, pool, ask.holder);
    }
    if (!excess && verdict == scheduling::PoolVerdict::kKeptBack) continue;
    if (!excess) return std::nullopt;
    found = std::move(excess);
  }
  return found;
}

const WaitExplainer::ClassAnswer& WaitExplainer::answer_for(const model::JobSpec& spec) {
  base::Duration runs_for;
  if (snapshot_->reservations != nullptr) {
    runs_for = model::longest_limit(spec.request, spec.time_limit) + snapshot_->policy->stop_grace;
  }
  for (const auto& known : classes_) {
    if (known.request == spec.request && known.runs_for == runs_for) return known;
  }
  classes_.push_back(answer_anew(spec.request, runs_for));
  return classes_.back();
}

model::WaitReason WaitExplainer::explain(const model::PreemptionHold& hold) const {
  model::WaitReason reason;
  reason.code = model::WaitCode::kPreempting;
  for (const model::AttemptId id : hold.victims) {
    const model::Job* victim = snapshot_->jobs.find(id.job.value);
    const bool is_there =
        victim != nullptr && model::holds_resources(victim->attempts.at(id.attempt - 1).state);
    if (is_there) reason.stopping.push_back(id.job);
  }
  return reason;
}

void WaitExplainer::explain_dependency(const model::Dependency& dependency,
                                       model::WaitReason& reason) const {
  reason.code = model::WaitCode::kDependency;
  reason.waits_for = dependency;
  if (dependency.kind == model::DependencyKind::kSingleton) return;
  const std::uint64_t id = dependency.on.job.value;
  if (dependency.on.whole_array) {
    if (const auto* array = snapshot_->arrays.find(id)) reason.target = array->outcome;
  } else if (const auto* target = snapshot_->jobs.find(id)) {
    reason.target_state = target->state;
    reason.blocked_by = target->id;
  }
}

namespace {

void tell_own(const model::Reservation& own, const model::Occurrence& when,
              model::WaitReason& reason) {
  reason.code = model::WaitCode::kReserved;
  reason.reservation = own.name;
  reason.is_own_reservation = true;
  reason.reservation_begin = when.begin;
  reason.reservation_end = when.end;
}

}  // namespace

// A job of a reservation waits for that to begin, unless it is to begin even later.
void WaitExplainer::explain_own_reservation(const model::JobSpec& spec,
                                            model::WaitReason& reason) const {
  const model::Reservation* own = snapshot_->reservations == nullptr
                                      ? nullptr
                                      : snapshot_->reservations->find(spec.request.reservation);
  const auto when = own == nullptr ? std::nullopt : occurrence_at(*own, spec.begin);
  if (when && when->begin == spec.begin) tell_own(*own, *when, reason);
}

// A job in the queue may have to wait for another occurrence than the one that it came for, or for
// a begin that was changed.
bool WaitExplainer::explain_next_occurrence(const model::JobSpec& spec,
                                            model::WaitReason& reason) const {
  const model::Reservation* own = snapshot_->reservations == nullptr
                                      ? nullptr
                                      : snapshot_->reservations->find(spec.request.reservation);
  if (own == nullptr) return false;
  const base::Duration needed =
      model::longest_limit(spec.request, spec.time_limit) + snapshot_->policy->stop_grace;
  const auto when = occurrence_with_room(*own, snapshot_->at, needed);
  if (!when || when->begin <= snapshot_->at) return false;
  tell_own(*own, *when, reason);
  return true;
}

// By the first gate that keeps it: another job, a time, its siblings, the rest of its back-off.
model::WaitReason WaitExplainer::explain_pending(const model::Job& job) const {
  model::WaitReason reason;
  reason.code = model::WaitCode::kBackoff;
  if (!job.waits_for.empty()) {
    explain_dependency(job.waits_for.front(), reason);
    return reason;
  }
  const bool is_time_to_come = job.eligible_at > snapshot_->at;
  if (is_time_to_come && job.eligible_at == job.spec->begin) {
    reason.code = model::WaitCode::kBeginTime;
    reason.not_before = job.spec->begin;
    explain_own_reservation(*job.spec, reason);
    return reason;
  }
  const auto* array = job.is_member() ? snapshot_->arrays.find(job.array_id.value) : nullptr;
  if (!is_time_to_come && array != nullptr && array->limit != 0 && !model::holds_resources(job)) {
    reason.code = model::WaitCode::kArrayLimit;
    reason.array_id = array->id;
    reason.array_limit = array->limit;
  }
  return reason;
}

void WaitExplainer::visit(const model::Node& node, Others others,
                          scheduling::ShortageCounter& counter, ClassAnswer& answer) const {
  const scheduling::Reservations* reservations = snapshot_->reservations.get();
  const auto reserved = reservations == nullptr
                            ? std::nullopt
                            : reservations->withheld_on(answer.request, node.id, others);
  if (!reserved) return counter.visit(node);
  if (!reserved->is_by_others) return counter.visit(node, reserved->withheld);
  if (!counter.visit_reserved(node, reserved->withheld)) return;
  std::size_t first = 0;  // beside which, and those before it, the node does not do
  for (; first + 1 < others.size(); ++first) {
    const auto with = reservations->withheld_on(answer.request, node.id, others.first(first + 1));
    if (with && !counter.fits_on(node, with->withheld)) break;
  }
  if (!answer.in_the_way || others[first].when.begin < answer.in_the_way->when.begin) {
    answer.in_the_way = others[first];
  }
}

WaitExplainer::ClassAnswer WaitExplainer::answer_anew(const model::ResourceRequest& request,
                                                      base::Duration runs_for) {
  ClassAnswer answer{.request = request, .runs_for = runs_for};
  std::vector<scheduling::Reserved> others;
  if (snapshot_->reservations != nullptr) {
    others = snapshot_->reservations->of_others(request,
                                                {snapshot_->at, snapshot_->at + answer.runs_for});
  }
  const auto parts = [&](const model::ResourceRequest& part, std::uint32_t count) {
    scheduling::ShortageCounter counter(part);
    snapshot_->nodes.for_each(
        [&](std::uint64_t, const model::Node& node) { visit(node, others, counter, answer); });
    answer.counts = counter.counts();
    answer.parts = count;
    answer.gpus = part.gpus;
    answer.could_hold = counter.nodes_up_that_could_hold() >= count;
    return !answer.could_hold;
  };
  // Nodes outside the job's own reservation are none that it may use, and not out of service.
  const model::Reservation* own = snapshot_->reservations == nullptr
                                      ? nullptr
                                      : snapshot_->reservations->find(request.reservation);
  const auto inside = own == nullptr ? std::nullopt : scheduling::request_inside(*own, request);
  // Among several ways to divide the request, this is the one on the fewest nodes that these could
  // hold.
  scheduling::for_each_split(inside ? *inside : request, snapshot_->nodes.size(), parts);
  const auto fits =
      std::ranges::find(answer.counts, model::Shortage::kFits, &model::WaitCount::shortage);
  answer.fits = fits != answer.counts.end() && fits->nodes >= answer.parts;
  if (model::is_gang(request)) place_gang(others, answer);
  return answer;
}

// Counts alone do not say it: its parts must be of one type, and together.
void WaitExplainer::place_gang(Others others, ClassAnswer& answer) {
  answer.in_the_way.reset();
  answer.fits = gang_fits(answer.request, others);
  if (answer.fits || others.empty() || !gang_fits(answer.request, {})) return;
  std::size_t first = 0;
  while (first + 1 < others.size() && gang_fits(answer.request, others.first(first + 1))) ++first;
  answer.in_the_way = others[first];
}

bool WaitExplainer::gang_fits(const model::ResourceRequest& wanted, Others others) {
  scheduling::Trial trial(cluster());
  model::ResourceRequest request = wanted;
  if (snapshot_->reservations != nullptr) {
    if (const model::Reservation* own = snapshot_->reservations->find(request.reservation)) {
      auto inside = scheduling::request_inside(*own, request);
      if (!inside) return false;
      request = *std::move(inside);
    }
    snapshot_->reservations->withhold_from(trial, request, others);
  }
  return scheduling::place(trial, request).has_value();
}

scheduling::Cluster& WaitExplainer::cluster() {
  if (!cluster_) {
    cluster_.emplace();
    snapshot_->nodes.for_each(
        [&](std::uint64_t, const model::Node& node) { cluster_->update(node); });
  }
  return *cluster_;
}

const scheduling::RunningEnds& WaitExplainer::running() {
  if (running_) return *running_;
  running_.emplace();
  snapshot_->jobs.for_each([&](std::uint64_t, const model::Job& job) {
    for (const model::Attempt& attempt : job.attempts) {
      if (!model::holds_resources(attempt.state)) continue;
      running_->put({job.id, attempt.number}, scheduling::latest_end(job, attempt),
                    attempt.allocation);
    }
  });
  return *running_;
}

// Planned starts are in the order of ranks. A job that would be submitted now is behind them all.
std::size_t WaitExplainer::planned_before(const scheduling::Rank* rank) const {
  if (snapshot_->planned_starts == nullptr) return 0;
  const auto& planned = *snapshot_->planned_starts;
  if (rank == nullptr) return planned.size();
  const auto behind = std::ranges::find_if(planned, [&](const scheduling::PlannedStart& each) {
    const model::Job* job = snapshot_->jobs.find(each.job.value);
    return job != nullptr && !(scheduling::rank_of(*job, *snapshot_->order) < *rank);
  });
  return static_cast<std::size_t>(behind - planned.begin());
}

std::optional<WaitExplainer::Kept> WaitExplainer::kept_from(const model::JobSpec& spec,
                                                            const scheduling::Rank* rank,
                                                            bool comes_last) {
  const std::size_t ahead = planned_before(comes_last ? nullptr : rank);
  if (ahead == 0 && snapshot_->holds == nullptr) return std::nullopt;
  for (const KeptAnswer& known : kept_) {
    if (known.request == spec.request && known.time_limit == spec.time_limit &&
        known.planned_ahead == ahead)
      return known.kept;
  }
  kept_.push_back({spec.request, spec.time_limit, ahead, kept_anew(spec, ahead)});
  return kept_.back().kept;
}

// The first of them beside which, and those before it, the request has no place now: without it the
// answer is another. By the scheduler's own rule for what is kept (backfill/timeline.h).
std::optional<WaitExplainer::Kept> WaitExplainer::kept_anew(const model::JobSpec& spec,
                                                            std::size_t planned_ahead) {
  const base::Instant now = snapshot_->at;
  const scheduling::Reservations none;
  scheduling::Trial trial(cluster());
  scheduling::Timeline timeline(trial, running(),
                                snapshot_->reservations ? *snapshot_->reservations : none,
                                {.now = now, .grace = snapshot_->policy->stop_grace});
  const auto is_in_the_way = [&](const model::Job& job, const scheduling::Slot& slot) {
    timeline.book(slot, job.spec->time_limit);
    return !timeline.place_now(spec.request, spec.time_limit);
  };
  const auto kept = [&](model::JobId job, base::Instant start) {
    return Kept{job, start > now + scheduling::kNextInstant ? start : base::Instant()};
  };
  if (snapshot_->holds != nullptr) {
    for (const auto& [id, hold] : snapshot_->holds->all()) {
      const model::Job* job = snapshot_->jobs.find(id.value);
      if (job == nullptr || !is_in_the_way(*job, {now, hold.allocation})) continue;
      return kept(id, hold.decided_at + snapshot_->policy->stop_grace);
    }
  }
  for (std::size_t i = 0; i < planned_ahead; ++i) {
    const auto& [id, slot, kept_from] = (*snapshot_->planned_starts)[i];
    const model::Job* job = snapshot_->jobs.find(id.value);
    if (job == nullptr) continue;
    const base::Instant start = std::max(kept_from, now + scheduling::kNextInstant);
    if (is_in_the_way(*job, {start, slot.allocation})) return kept(id, start);
  }
  return std::nullopt;
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
  if (job.state == model::JobState::kHeld) {
    model::WaitReason reason;
    reason.code = code_of(job.hold);
    if (reason.code != model::WaitCode::kHeldByPlatform) return reason;
    if (job.attempts.empty()) {
      reason.held_for = model::HeldFor::kRepair;
    } else if (job.attempts.back().reason == model::EndReason::kEnvironmentLost) {
      reason.held_for = model::HeldFor::kEnvironment;
    }
    return reason;
  }
  if (job.state != model::JobState::kQueued) return explain_pending(job);
  if (snapshot_->holds != nullptr) {
    if (const model::PreemptionHold* hold = snapshot_->holds->find(job.id)) return explain(*hold);
  }
  const scheduling::Rank rank = scheduling::rank_of(job, *snapshot_->order);
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

void WaitExplainer::explain_reservation(const ClassAnswer& answer, model::WaitReason& reason) {
  if (!answer.in_the_way) return;
  reason.code = model::WaitCode::kReserved;
  reason.reservation = answer.in_the_way->reservation->name;
  reason.reservation_begin = answer.in_the_way->when.begin;
  reason.reservation_end = answer.in_the_way->when.end;
}

// Says what is out of service before limits and other jobs, because no end of these would help.
void WaitExplainer::explain_place(const model::JobSpec& spec, const scheduling::Rank* rank,
                                  model::WaitReason& reason) {
  if (explain_next_occurrence(spec, reason)) return;
  const ClassAnswer& answer = answer_for(spec);
  if (answer.could_hold) {
    const scheduling::QuotaLedger awaited = awaited_before(rank);
    reason.quota =
        scheduling::excess_if_started(*snapshot_->policy->organisation, spec, quotas(), &awaited);
    if (!reason.quota && pools().is_active() && !pools().is_by_type()) {
      const scheduling::PoolBalance& pool = pools().all().begin()->second.balance();
      const auto ask = scheduling::pool_ask(pool.guarantees(), *snapshot_->policy, spec);
      reason.quota = pool.excess_of(ask);
      if (reason.quota) reason.surplus = surplus_excess_of(spec, rank);
    }
  }
  if (reason.quota) {
    reason.code = model::WaitCode::kQuota;
    return;
  }
  const bool has_types =
      scheduling::limits_types(*snapshot_->policy->organisation) || pools().is_by_type();
  if (answer.could_hold && has_types) return explain_types(spec, rank, reason);
  explain_free(spec, rank, reason);
}

// Limits and guarantees by type leave it other types, or none that could hold it.
void WaitExplainer::explain_types(const model::JobSpec& spec, const scheduling::Rank* rank,
                                  model::WaitReason& reason) {
  const scheduling::QuotaLedger awaited = awaited_before(rank);
  scheduling::BarredTypes barred =
      scheduling::barred_types(*snapshot_->policy->organisation, spec,
                               cluster().totals().gpus_by_type(), quotas(), &awaited);
  if (pools().is_by_type()) {
    scheduling::bar_kept_back(pools(), *snapshot_->policy, spec, cluster().totals().gpus_by_type(),
                              barred);
  }
  if (barred.types.empty()) return explain_free(spec, rank, reason);
  reason.quota = std::move(barred.excess);
  model::JobSpec rest = spec;
  rest.request.barred_types = std::move(barred.types);
  if (answer_for(rest).could_hold) return explain_free(rest, rank, reason);
  reason.surplus = surplus_excess_of(spec, rank);
  reason.code = model::WaitCode::kQuota;
}

void WaitExplainer::explain_free(const model::JobSpec& spec, const scheduling::Rank* rank,
                                 model::WaitReason& reason) {
  const ClassAnswer& answer = answer_for(spec);
  reason.surplus = surplus_excess_of(spec, rank);
  reason.counts = answer.counts;
  reason.nodes_needed = answer.parts;
  reason.gpus_per_node = answer.gpus;
  reason.within = spec.request.within;
  if (!answer.fits) {
    reason.code = answer.could_hold ? model::WaitCode::kNoCapacity : model::WaitCode::kNoNode;
    return explain_reservation(answer, reason);
  }
  if (const auto kept = kept_from(spec, rank, reason.surplus.has_value())) {
    reason.kept_for = kept->job;
    reason.kept_until = kept->until;
  }
  const bool is_behind = reason.jobs_ahead > 0 || reason.kept_for.valid();
  reason.code = is_behind ? model::WaitCode::kPriority : model::WaitCode::kNotEvaluated;
}

}  // namespace gpu_platform::views
