#include "controller/explanation.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "controller/forecast.h"
#include "scheduling/trial.h"

namespace gpu_platform::controller {

namespace {

using scheduling::Rank;
using scheduling::Reservation;
using scheduling::WaitingJob;
using scheduling::WhatIf;

PlaceInLine line_before(const Picture& picture, const Rank& rank) {
  PlaceInLine line{picture.queue().count_before(rank), {}};
  const std::uint64_t named = std::min<std::uint64_t>(line.jobs_ahead, kMostNamed);
  if (named == 0) return line;
  picture.queue().for_each_while([&](const WaitingJob& ahead) {
    line.first_ahead.push_back(ahead.id);
    return line.first_ahead.size() < named;
  });
  return line;
}

class Explainer {
 public:
  Explainer(Picture& picture, const WaitingJob& job, const Rank& rank, base::Instant now)
      : picture_(picture),
        policy_(*picture.snapshot().policy),
        job_(job),
        rank_(rank),
        options_(picture.options(now)) {}

  Explanation run(Effort effort) {
    found_.line = line_before(picture_, rank_);
    const std::vector<Reservation> kept = reservations();
    {
      WhatIf what_if(picture_.books(), policy_, options_, kept, rank_);
      found_.starts_now = what_if.start_of(job_);
      if (found_.starts_now) return std::move(found_);
      found_.counterfactuals = counterfactuals(what_if, picture_.books()->cluster, job_);
      if (all_ahead_have_places(kept)) estimate(what_if);
    }
    if (effort != Effort::kThorough) return std::move(found_);
    if (!picture_.queue().contains(job_.id)) make_room(kept);
    if (!found_.estimate) estimate_thoroughly();
    expect();
    return std::move(found_);
  }

  // By hard limits, where `now` is still to come.
  Explanation run_ahead() {
    found_.line = line_before(picture_, rank_);
    const std::vector<Reservation> kept = reservations();
    {
      WhatIf what_if(picture_.books(), policy_, options_, kept, rank_);
      auto place = what_if.start_of(job_);
      if (place) found_.estimate = StartEstimate{options_.now, *std::move(place), {}};
      if (!place && all_ahead_have_places(kept)) estimate(what_if);
    }
    if (!found_.estimate) estimate_thoroughly();
    return std::move(found_);
  }

 private:
  std::vector<Reservation> reservations() const {
    const auto& last = picture_.snapshot().reservations;
    return last == nullptr ? std::vector<Reservation>() : *last;
  }

  // Else those between would have to find theirs first.
  bool all_ahead_have_places(const std::vector<Reservation>& kept) const {
    const auto ahead = std::ranges::count_if(kept, [&](const Reservation& each) {
      const Rank* rank = picture_.queue().find_rank(each.job);
      return rank != nullptr && *rank < rank_;
    });
    return static_cast<std::uint64_t>(ahead) == found_.line.jobs_ahead;
  }

  void make_room(const std::vector<Reservation>& kept) {
    if (!policy_.allow_preemption || picture_.books()->victims.size() == 0) return;
    const scheduling::CycleOptions options{.now = options_.now};
    WhatIf what_if(picture_.books(), policy_, options, kept, rank_);
    found_.preemption = what_if.preemption_for(job_);
    if (!found_.preemption) return;
    found_.estimate =
        StartEstimate{options.now + policy_.stop_grace, found_.preemption->claimed, {}};
  }

  void estimate(WhatIf& what_if) {
    if (auto slot = what_if.slot_of(job_)) set_estimate(*std::move(slot));
  }

  void set_estimate(scheduling::Slot slot) {
    found_.estimate = StartEstimate{slot.start, std::move(slot.allocation), {}};
    name_those_before();
  }

  // All jobs get places, this one among them.
  void estimate_thoroughly() {
    if (policy_.reservation_depth == 0) return;
    model::Policy all = policy_;
    all.reservation_depth = std::numeric_limits<std::uint32_t>::max();
    const scheduling::Plan plan = scheduling::plan_cycle(picture_.books(), all, options_);
    const auto own = std::ranges::find(plan.reservations, job_.id, &Reservation::job);
    if (own != plan.reservations.end()) return set_estimate(own->slot);
    if (picture_.queue().contains(job_.id)) return;
    WhatIf what_if(picture_.books(), all, options_, plan.reservations, rank_);
    estimate(what_if);
  }

  void expect() {
    found_.too_many_ahead = found_.line.jobs_ahead >= kMostForecast;
    if (found_.too_many_ahead) return;
    const scheduling::Forecast forecast = forecast_one(picture_, job_, rank_, options_.now);
    const auto own = forecast.starts.find(job_.id);
    if (own == forecast.starts.end()) return;
    found_.expected = StartExpectation{own->second, forecast.basis, forecast.runs};
    if (found_.estimate) limit_to(found_.expected->start, found_.estimate->start);
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

  void name_those_before() {
    StartEstimate& estimate = *found_.estimate;
    for (const auto& [key, held] : picture_.books()->running.ends()) {
      if (key.end + policy_.stop_grace > estimate.start) break;
      if (overlaps(held, estimate.allocation)) estimate.after.push_back(key.attempt.job);
    }
    std::ranges::reverse(estimate.after);
    if (estimate.after.size() > kMostNamed) estimate.after.resize(kMostNamed);
  }

  Picture& picture_;
  const model::Policy& policy_;
  const WaitingJob& job_;
  const Rank rank_;
  const scheduling::CycleOptions options_;
  Explanation found_;
};

using NoReservations = std::vector<Reservation>;

// Behind everybody of its priority.
WaitingJob last_in_line(std::shared_ptr<const model::JobSpec> spec, base::Instant now) {
  return {model::JobId(std::numeric_limits<std::uint64_t>::max()), std::move(spec), now, {}};
}

Rank rank_in(const Picture& picture, const WaitingJob& job) {
  return scheduling::rank_of(job.id, *job.spec, job.submitted_at, picture.snapshot().order,
                             job.overdue_since);
}

}  // namespace

PlaceInLine place_in_line(const Picture& picture, model::JobId job) {
  const Rank* rank = picture.queue().find_rank(job);
  CHECK(rank != nullptr);
  return line_before(picture, *rank);
}

Explanation explain_waiting(Picture& picture, model::JobId job, base::Instant now, Effort effort) {
  const WaitingJob* waiting = picture.queue().find(job);
  CHECK(waiting != nullptr);
  return Explainer(picture, *waiting, *picture.queue().find_rank(job), now).run(effort);
}

Explanation explain_new(Picture& picture, std::shared_ptr<const model::JobSpec> spec,
                        base::Instant now, Effort effort) {
  const WaitingJob job = last_in_line(std::move(spec), now);
  return Explainer(picture, job, rank_in(picture, job), now).run(effort);
}

Explanation foresee_new(Picture& picture, std::shared_ptr<const model::JobSpec> spec) {
  const base::Instant begin = spec->begin;
  const WaitingJob job = last_in_line(std::move(spec), begin);
  return Explainer(picture, job, rank_in(picture, job), begin).run_ahead();
}

bool starts_now(Picture& picture, std::shared_ptr<const model::JobSpec> spec, base::Instant now) {
  const WaitingJob job = last_in_line(std::move(spec), now);
  const auto& kept = picture.snapshot().reservations;
  const scheduling::CycleOptions options = Picture::options(now);
  WhatIf what_if(picture.books(), *picture.snapshot().policy, options,
                 kept == nullptr ? NoReservations() : *kept, rank_in(picture, job));
  return what_if.start_of(job).has_value();
}

}  // namespace gpu_platform::controller
