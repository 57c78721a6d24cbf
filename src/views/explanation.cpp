#include "views/explanation.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "base/check.h"
#include "model/budget.h"
#include "model/job_spec.h"
#include "scheduling/quota/budgets.h"
#include "scheduling/trial.h"
#include "views/predicted_starts.h"

namespace gpu_platform::views {

namespace {

using scheduling::PlannedStart;
using scheduling::Rank;
using scheduling::WaitingJob;
using scheduling::WhatIf;

PlaceInLine line_before(const PlanningView& view, const Rank& rank) {
  PlaceInLine line{view.queue().count_before(rank), {}};
  const std::uint64_t named = std::min<std::uint64_t>(line.jobs_ahead, kMaxNamed);
  if (named == 0) return line;
  view.queue().for_each_while([&](const WaitingJob& ahead) {
    line.first_ahead.push_back(ahead.id);
    return line.first_ahead.size() < named;
  });
  return line;
}

class Explainer {
 public:
  Explainer(PlanningView& view, const WaitingJob& job, const Rank& rank, base::Instant now)
      : view_(view),
        policy_(*view.snapshot().policy),
        job_(job),
        rank_(rank),
        options_(view.options(now)),
        corrections_(view.snapshot().scores->calibration().corrections()) {}

  Explanation run(Effort effort) {
    found_.line = line_before(view_, rank_);
    const std::vector<PlannedStart> kept = planned_starts();
    {
      WhatIf what_if(view_.books(), policy_, options_, kept, rank_);
      found_.starts_now = what_if.start_of(job_);
      if (found_.starts_now) return std::move(found_);
      found_.counterfactuals = counterfactuals(what_if, view_.books()->cluster, job_);
      if (all_ahead_have_places(kept)) plan_start(what_if, kept);
    }
    if (effort != Effort::kThorough) return std::move(found_);
    if (!view_.queue().contains(job_.id)) preempt(kept);
    if (!found_.planned) plan_start_thoroughly();
    trust();
    predict();
    return std::move(found_);
  }

  // By hard limits, where `now` is still to come.
  Explanation run_ahead() {
    found_.line = line_before(view_, rank_);
    const std::vector<PlannedStart> kept = planned_starts();
    {
      WhatIf what_if(view_.books(), policy_, options_, kept, rank_);
      auto place = what_if.start_of(job_);
      if (place) found_.planned = PlannedStartDetail{options_.now, *std::move(place), {}, {}};
      if (!place && all_ahead_have_places(kept)) plan_start(what_if, kept);
    }
    if (!found_.planned) plan_start_thoroughly();
    return std::move(found_);
  }

 private:
  std::vector<PlannedStart> planned_starts() const {
    const auto& last = view_.snapshot().planned_starts;
    return last == nullptr ? std::vector<PlannedStart>() : *last;
  }

  // Else those between would have to find theirs first.
  bool all_ahead_have_places(const std::vector<PlannedStart>& kept) const {
    const auto ahead = std::ranges::count_if(kept, [&](const PlannedStart& each) {
      const Rank* rank = view_.queue().find_rank(each.job);
      return rank != nullptr && *rank < rank_;
    });
    return static_cast<std::uint64_t>(ahead) == found_.line.jobs_ahead;
  }

  void preempt(const std::vector<PlannedStart>& kept) {
    if (!policy_.allow_preemption || view_.books()->victims.size() == 0) return;
    const scheduling::CycleOptions options{.now = options_.now};
    WhatIf what_if(view_.books(), policy_, options, kept, rank_);
    found_.preemption = what_if.preemption_for(job_);
    if (!found_.preemption) return;
    found_.planned =
        PlannedStartDetail{options.now + policy_.stop_grace, found_.preemption->held, {}, {}};
  }

  void plan_start(WhatIf& what_if, const std::vector<PlannedStart>& others) {
    if (auto slot = what_if.slot_of(job_)) set_planned_start(*std::move(slot), others);
  }

  void set_planned_start(scheduling::Slot slot, const std::vector<PlannedStart>& others) {
    found_.planned = PlannedStartDetail{slot.start, std::move(slot.allocation), {}, {}};
    name_those_before(others);
  }

  // All jobs get places, this one among them.
  void plan_start_thoroughly() {
    if (policy_.backfill_depth == 0) return;
    model::Policy all = policy_;
    all.backfill_depth = std::numeric_limits<std::uint32_t>::max();
    const scheduling::Plan plan = scheduling::plan_cycle(view_.books(), all, options_);
    const auto own = std::ranges::find(plan.planned_starts, job_.id, &PlannedStart::job);
    if (own != plan.planned_starts.end()) return set_planned_start(own->slot, plan.planned_starts);
    if (view_.queue().contains(job_.id)) return;
    WhatIf what_if(view_.books(), all, options_, plan.planned_starts, rank_);
    plan_start(what_if, plan.planned_starts);
  }

  void predict() {
    found_.too_many_ahead = found_.line.jobs_ahead >= kMaxPredictedInQueue;
    if (found_.too_many_ahead) return;
    const scheduling::PredictedStarts prediction = predict_one(view_, job_, rank_, options_.now);
    const auto own = prediction.starts.find(job_.id);
    if (own == prediction.starts.end()) return;
    const base::Instant planned = found_.planned ? found_.planned->start : base::Instant();
    const scheduling::StartQuantiles start = corrections_.corrected(
        {options_.now, found_.line.jobs_ahead, own->second, planned, is_promised()});
    found_.predicted = PredictedStart{start, prediction.basis, prediction.runs};
  }

  bool is_promised() const { return view_.snapshot().promised == job_.id; }

  // A start by preemption does not wait for others.
  void trust() {
    if (!found_.planned || found_.preemption || is_promised()) return;
    found_.planned->trust =
        corrections_.trust_in(found_.planned->start, options_.now, found_.line.jobs_ahead);
  }

  static bool overlaps(const model::Allocation& held, const model::Allocation& wanted) {
    return std::ranges::any_of(held.nodes, [&](const model::NodeAllocation& part) {
      const auto same = std::ranges::find(wanted.nodes, part.node, &model::NodeAllocation::node);
      if (same == wanted.nodes.end()) return false;
      // Without GPUs on either side it is CPUs and memory that are waited for.
      const scheduling::GpuMask gpus = scheduling::gpus_of(*same);
      return gpus == 0 || (gpus & scheduling::gpus_of(part)) != 0;
    });
  }

  // With those that the waiting ones among them wait for in turn.
  void name_those_before(const std::vector<PlannedStart>& others) {
    PlannedStartDetail& planned = *found_.planned;
    std::vector<const PlannedStart*> earlier;
    for (const PlannedStart& each : others) {
      const Rank* rank = view_.queue().find_rank(each.job);
      const bool is_ahead = rank != nullptr && *rank < rank_;
      if (is_ahead && each.slot.start < planned.start) earlier.push_back(&each);
    }
    std::ranges::sort(earlier, std::greater(), [](const auto* each) { return each->slot.start; });
    std::vector<const model::Allocation*> places{&planned.allocation};
    const auto has_part = [&](const model::Allocation& held) {
      return std::ranges::any_of(places,
                                 [&](const auto* wanted) { return overlaps(held, *wanted); });
    };
    std::vector<std::pair<base::Instant, model::JobId>> ends;
    for (const PlannedStart* each : earlier) {
      if (!has_part(each->slot.allocation)) continue;
      places.push_back(&each->slot.allocation);
      ends.emplace_back(each->slot.start + view_.queue().find(each->job)->spec->time_limit,
                        each->job);
    }
    for (const auto& [key, held] : view_.books()->running.ends()) {
      if (key.end + policy_.stop_grace > planned.start) break;
      if (has_part(held)) ends.emplace_back(key.end, key.attempt.job);
    }
    std::ranges::sort(ends, std::greater());
    for (const auto& [end, job] : ends) {
      if (planned.after.size() == kMaxNamed) break;
      planned.after.push_back(job);
    }
  }

  PlanningView& view_;
  const model::Policy& policy_;
  const WaitingJob& job_;
  const Rank rank_;
  const scheduling::CycleOptions options_;
  const scheduling::StartCorrections corrections_;  // by past errors
  Explanation found_;
};

using NoPlannedStarts = std::vector<PlannedStart>;

// Places the job behind all jobs of its priority.
WaitingJob last_in_line(std::shared_ptr<const model::JobSpec> spec, base::Instant now) {
  return {model::JobId(std::numeric_limits<std::uint64_t>::max()), std::move(spec), now, {}};
}

Rank rank_in(const PlanningView& view, const WaitingJob& job) {
  return scheduling::rank_of(job, *view.snapshot().order);
}

// Lifts the budgets that bar a start of the job, as they will be when they have renewed, and puts
// them back.
class WithoutBars {
 public:
  WithoutBars(PlanningView& view, const model::JobSpec& spec, base::Instant now)
      : view_(view), former_(view.books()->budgets) {
    model::BudgetStates lifted = *former_;
    const model::Organisation& organisation = *view.snapshot().policy->organisation;
    for (const model::BudgetState* state : scheduling::budgets_of(*former_, organisation, spec)) {
      if (!model::bars_starts(*state, now)) continue;
      renewal_ = std::max(renewal_, model::end_of(state->budget.period, state->period_begin));
      lifted.at(state->budget.key).level = model::BudgetLevel::kWithin;
    }
    if (bars()) view_.books().put(std::move(lifted));
  }
  WithoutBars(const WithoutBars&) = delete;
  WithoutBars& operator=(const WithoutBars&) = delete;
  ~WithoutBars() {
    if (bars()) view_.books().put(former_);
  }

  bool bars() const { return renewal_.is_set(); }
  // When the last of them renews.
  base::Instant renewal() const { return renewal_; }

 private:
  PlanningView& view_;
  const base::Shared<model::BudgetStates> former_;
  base::Instant renewal_;
};

// Plans a start no earlier than that, which is still to come.
Explanation plan_from(PlanningView& view, const WaitingJob& job, const Rank& rank,
                      base::Instant from) {
  Explanation found = Explainer(view, job, rank, from).run_ahead();
  if (found.planned) found.planned->start = std::max(found.planned->start, from);
  return found;
}

// No change of its request starts a job that a budget bars: it starts when that renews, or later.
Explanation explain_place(PlanningView& view, const WaitingJob& job, const Rank& rank,
                          base::Instant now, Effort effort) {
  const WithoutBars lifted(view, *job.spec, now);
  return lifted.bars() ? plan_from(view, job, rank, std::max(now, lifted.renewal()))
                       : Explainer(view, job, rank, now).run(effort);
}

}  // namespace

PlaceInLine place_in_line(const PlanningView& view, model::JobId job) {
  const Rank* rank = view.queue().find_rank(job);
  CHECK(rank != nullptr);
  return line_before(view, *rank);
}

Explanation explain_waiting(PlanningView& view, model::JobId job, base::Instant now,
                            Effort effort) {
  const WaitingJob* waiting = view.queue().find(job);
  CHECK(waiting != nullptr);
  // The queue's own may move as the books change.
  return explain_place(view, WaitingJob(*waiting), Rank(*view.queue().find_rank(job)), now, effort);
}

Explanation explain_new(PlanningView& view, std::shared_ptr<const model::JobSpec> spec,
                        base::Instant now, Effort effort) {
  const WaitingJob job = last_in_line(std::move(spec), now);
  return explain_place(view, job, rank_in(view, job), now, effort);
}

Explanation plan_new(PlanningView& view, std::shared_ptr<const model::JobSpec> spec) {
  const base::Instant begin = spec->begin;
  const WaitingJob job = last_in_line(std::move(spec), begin);
  const WithoutBars lifted(view, *job.spec, view.snapshot().at);
  return plan_from(view, job, rank_in(view, job), std::max(begin, lifted.renewal()));
}

bool starts_now(PlanningView& view, std::shared_ptr<const model::JobSpec> spec, base::Instant now) {
  const WaitingJob job = last_in_line(std::move(spec), now);
  const auto& kept = view.snapshot().planned_starts;
  const scheduling::CycleOptions options = PlanningView::options(now);
  WhatIf what_if(view.books(), *view.snapshot().policy, options,
                 kept == nullptr ? NoPlannedStarts() : *kept, rank_in(view, job));
  return what_if.start_of(job).has_value();
}

}  // namespace gpu_platform::views
