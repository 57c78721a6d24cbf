#include "controller/snapshot.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "scheduling/book_entries.h"
#include "scheduling/explain/shortages.h"
#include "scheduling/gang/split.h"
#include "scheduling/order/rank.h"
#include "scheduling/placement/place.h"

namespace gpu_platform::controller {

namespace {

model::WaitCode code_of(model::Hold hold) {
  if (hold == model::Hold::kByAdministrator) return model::WaitCode::kHeldByAdministrator;
  return hold == model::Hold::kByPlatform ? model::WaitCode::kHeldByPlatform
                                          : model::WaitCode::kHeldByUser;
}

}  // namespace

WaitExplainer::WaitExplainer(std::shared_ptr<const Snapshot> snapshot)
    : snapshot_(std::move(snapshot)) {}

const std::vector<model::JobId>& WaitExplainer::order() {
  if (ordered_) return order_;
  ordered_ = true;
  std::vector<scheduling::Rank> ranks;
  ranks.reserve(snapshot_->counts.queued);
  snapshot_->jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (job.state != model::JobState::kQueued) return;
    ranks.push_back(scheduling::rank_of(job.id, *job.spec, job.submitted_at, snapshot_->order,
                                        job.overdue_since));
  });
  std::ranges::sort(ranks);
  order_.reserve(ranks.size());
  for (const scheduling::Rank& rank : ranks) {
    position_.emplace(rank.job.value, order_.size());
    order_.push_back(rank.job);
  }
  return order_;
}

const scheduling::QuotaLedger& WaitExplainer::quotas() {
  if (!quotas_) {
    quotas_ = scheduling::quotas_of(snapshot_->jobs, *snapshot_->policy->organisation,
                                    *snapshot_->period_use);
  }
  return *quotas_;
}

const scheduling::PoolBalance& WaitExplainer::pools() {
  if (!pools_) {
    pools_ =
        scheduling::lending_of(snapshot_->jobs, *snapshot_->policy, snapshot_->order.cluster_gpus)
            .balance();
  }
  return *pools_;
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
  const std::uint64_t id = dependency.on.job.value;
  if (dependency.on.whole_array) {
    if (const auto* array = snapshot_->arrays.find(id)) reason.target = array->outcome;
  } else if (const auto* target = snapshot_->jobs.find(id)) {
    reason.target_state = target->state;
    reason.blocked_by = target->id;
  }
}

// A job of a reservation waits for that to begin, unless it is to begin even later.
void WaitExplainer::explain_own_reservation(const model::JobSpec& spec,
                                            model::WaitReason& reason) const {
  const model::Reservation* own = snapshot_->reservations == nullptr
                                      ? nullptr
                                      : snapshot_->reservations->find(spec.request.reservation);
  if (own == nullptr || own->begin != spec.begin) return;
  reason.code = model::WaitCode::kReserved;
  reason.reservation = own->name;
  reason.is_own_reservation = true;
  reason.reservation_begin = own->begin;
  reason.reservation_end = own->end;
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

scheduling::Span WaitExplainer::span_of(const ClassAnswer& answer) const {
  return {snapshot_->at, snapshot_->at + answer.runs_for};
}

void WaitExplainer::visit(const model::Node& node, scheduling::ShortageCounter& counter,
                          ClassAnswer& answer) {
  const auto left = snapshot_->reservations == nullptr ? std::nullopt
                                                       : snapshot_->reservations->as_left_to(
                                                             answer.request, node, span_of(answer));
  if (!left) return counter.visit(node);
  if (left->by == nullptr) return counter.visit(left->node);
  counter.visit(node, left->node);
  if (answer.in_the_way == nullptr || left->by->begin < answer.in_the_way->begin) {
    answer.in_the_way = left->by;
  }
}

WaitExplainer::ClassAnswer WaitExplainer::answer_anew(const model::ResourceRequest& request,
                                                      base::Duration runs_for) {
  ClassAnswer answer{.request = request, .runs_for = runs_for};
  const auto parts = [&](const model::ResourceRequest& part, std::uint32_t count) {
    scheduling::ShortageCounter counter(part);
    snapshot_->nodes.for_each(
        [&](std::uint64_t, const model::Node& node) { visit(node, counter, answer); });
    answer.counts = counter.counts();
    answer.parts = count;
    answer.gpus = part.gpus;
    answer.could_hold = counter.nodes_up_that_could_hold() >= count;
    return !answer.could_hold;
  };
  // Of several ways to divide it the one on fewest nodes is told that these could hold.
  scheduling::for_each_split(request, snapshot_->nodes.size(), parts);
  const auto fits =
      std::ranges::find(answer.counts, model::Shortage::kFits, &model::WaitCount::shortage);
  answer.fits = fits != answer.counts.end() && fits->nodes >= answer.parts;
  if (model::is_gang(request)) answer.fits = gang_fits(answer);
  return answer;
}

// Counts alone do not say it: its parts must be of one type, and together.
bool WaitExplainer::gang_fits(const ClassAnswer& answer) {
  if (!cluster_) {
    cluster_.emplace();
    snapshot_->nodes.for_each(
        [&](std::uint64_t, const model::Node& node) { cluster_->update(node); });
  }
  scheduling::Trial trial(*cluster_);
  model::ResourceRequest request = answer.request;
  if (snapshot_->reservations != nullptr) {
    if (const model::Reservation* own = snapshot_->reservations->find(request.reservation)) {
      auto inside = scheduling::request_inside(*own, request);
      if (!inside) return false;
      request = *std::move(inside);
    }
    snapshot_->reservations->withhold_from(trial, request, span_of(answer));
  }
  return scheduling::place(trial, request).has_value();
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
    return reason;
  }
  if (job.state != model::JobState::kQueued) return explain_pending(job);
  if (snapshot_->holds != nullptr) {
    if (const model::PreemptionHold* hold = snapshot_->holds->find(job.id)) return explain(*hold);
  }
  return explain_behind(*job.spec, jobs_ahead, first);
}

model::WaitReason WaitExplainer::explain_behind(const model::JobSpec& spec,
                                                std::uint64_t jobs_ahead, model::JobId first) {
  model::WaitReason reason;
  reason.jobs_ahead = jobs_ahead;
  if (jobs_ahead > 0) reason.blocked_by = first;
  explain_place(spec, reason);
  return reason;
}

// Where some node has enough free, but for a reservation of others.
void WaitExplainer::explain_reservation(const ClassAnswer& answer, model::WaitReason& reason) {
  const bool is_reserved = std::ranges::find(answer.counts, model::Shortage::kReserved,
                                             &model::WaitCount::shortage) != answer.counts.end();
  if (!is_reserved || answer.in_the_way == nullptr) return;
  reason.code = model::WaitCode::kReserved;
  reason.reservation = answer.in_the_way->name;
  reason.reservation_begin = answer.in_the_way->begin;
  reason.reservation_end = answer.in_the_way->end;
}

void WaitExplainer::explain_place(const model::JobSpec& spec, model::WaitReason& reason) {
  reason.quota = scheduling::excess_if_started(*snapshot_->policy->organisation, spec, quotas());
  if (!reason.quota && pools().is_active()) {
    const auto ask = scheduling::pool_ask(pools().guarantees(), *snapshot_->policy, spec);
    reason.quota = pools().excess_of(ask);
  }
  if (reason.quota) {
    reason.code = model::WaitCode::kQuota;
    return;
  }
  const ClassAnswer& answer = answer_for(spec);
  reason.counts = answer.counts;
  reason.nodes_needed = answer.parts;
  reason.gpus_per_node = answer.gpus;
  reason.within = spec.request.within;
  if (answer.fits) {
    reason.code =
        reason.jobs_ahead > 0 ? model::WaitCode::kPriority : model::WaitCode::kNotEvaluated;
  } else {
    reason.code = answer.could_hold ? model::WaitCode::kNoCapacity : model::WaitCode::kNoNode;
    explain_reservation(answer, reason);
  }
}

}  // namespace gpu_platform::controller
