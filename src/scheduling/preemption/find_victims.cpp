#include "scheduling/preemption/find_victims.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <tuple>
#include <utility>

#include "scheduling/placement/choose_gpus.h"
#include "scheduling/placement/demand.h"

namespace gpu_platform::scheduling {

// The criteria in their order; the smallest is the cheapest.
struct VictimSearch::Cost {
  std::uint32_t stops = 0;  // only where they are reclaimed
  std::int64_t lost_ms = 0;
  int importance = 0;  // of the most important one
  std::size_t victims = 0;
  std::int64_t age_ms = 0;  // of the oldest
  std::vector<model::AttemptId> ids;

  friend auto operator<=>(const Cost&, const Cost&) = default;
};

struct VictimSearch::Best {
  std::optional<Cost> cost;
  Candidates victims;
  model::Allocation allocation;

  void offer(Cost of_these, const Candidates& these, model::Allocation there) {
    if (cost && *cost <= of_these) return;
    cost = std::move(of_these);
    victims = these;
    allocation = std::move(there);
  }
};

namespace {

std::int64_t age_ms(const Victim& victim, base::Instant now) {
  return std::max<std::int64_t>(0, base::whole_milliseconds(now - victim.started_at));
}

// The GPU time of so much of a GPU.
std::int64_t gpu_time_ms(std::int64_t ms, base::GpuShare share) {
  return share == base::kWholeGpu ? ms : ms * share.value() / base::kWholeGpu.value();
}

// The GPU time that stopping it loses; a job without GPUs counts as one of a GPU.
std::int64_t lost_ms(const Victim& victim, base::Instant now) {
  const std::int64_t age = age_ms(victim, now);
  if (model::is_part(victim.allocation)) {
    return gpu_time_ms(age, model::share_of(victim.allocation));
  }
  return age * std::max<std::int64_t>(1, victim.allocation.gpu_count());
}

// What a job on one node needs there at least, without regard to where GPUs lie.
class NodeNeed {
 public:
  NodeNeed(const Trial& trial, model::NodeId node, const model::ResourceRequest& request)
      : node_(node), gpus_(request.gpus) {
    const Cluster::NodeRecord* record = trial.cluster().find(node);
    if (record == nullptr || !record->free.is_up) return;
    const NodeShape& shape = *record->shape_class->shape;
    if (!may_use(request, shape)) return;
    is_up_ = true;
    free_ = record->free;
    demand_ = demand_on(request, {.cpus = shape.cpus,
                                  .memory = shape.memory,
                                  .gpus = static_cast<std::uint32_t>(shape.gpus.size())});
    GpuMask accepted = 0;
    GpuFilter(request, trial.cluster().types())
        .for_each_type(*record->shape_class, [&](GpuMask of_type) { accepted |= of_type; });
    usable_ = accepted & record->in_service;
    // Where a part goes, placing alone says.
    if (model::is_part(request)) gpus_ = 0;
    note_parts(trial.cluster().gpu_parts());
    if (request.accept_degraded) {
      free_.gpus |= free_.degraded;
      usable_ |= accepted & record->degraded;
    }
    if (!model::names_gpus(request)) return;
    const GpuNames& names = trial.cluster().gpu_names();
    usable_ &= ~names.mask_on(node, request.gpus_avoid);
    if (!request.gpus_only.empty()) usable_ &= names.mask_on(node, request.gpus_only);
  }

  // Returns whether the job may start there.
  bool is_up() const { return is_up_; }
  void give_back(const Victim& victim) {
    for (const auto& part : victim.allocation.nodes) {
      if (part.node != node_) continue;
      if (model::is_part(victim.allocation)) {
        give_back_part(part.grants.front());
      } else {
        free_.gpus |= gpus_of(part);
      }
      scheduling::give_back(free_, part);
    }
  }
  bool is_met() const {
    return is_up_ && static_cast<std::uint32_t>(std::popcount(free_.gpus & usable_)) >= gpus_ &&
           free_.cpus >= demand_.cpus && free_.memory >= demand_.memory;
  }

 private:
  void note_parts(const PartIndex& index) {
    for (GpuMask left = index.on(node_); left != 0; left &= left - 1) {
      const auto gpu = static_cast<std::uint32_t>(std::countr_zero(left));
      parts_.emplace_back(gpu, index.find({node_, gpu})->free_share);
    }
  }
  // With all of its parts a GPU is free.
  void give_back_part(const model::GpuGrant& grant) {
    const auto known = std::ranges::find(parts_, grant.gpu_index, &FreeShare::first);
    if (known == parts_.end()) return;
    known->second += grant.share;
    if (known->second >= base::kWholeGpu) free_.gpus |= GpuMask{1} << grant.gpu_index;
  }

  using FreeShare = std::pair<std::uint32_t, base::GpuShare>;  // of the GPU with that index

  model::NodeId node_;
  std::uint32_t gpus_ = 0;
  bool is_up_ = false;
  FreeState free_;
  GpuMask usable_ = 0;
  std::vector<FreeShare> parts_;  // of GPUs in parts
  Demand demand_;
};

}  // namespace

// The cheapest subset of one node's candidates, by branch and bound: those that cost least first,
// and nothing is followed that costs more already than the best set known of any node. Both parts
// of what is compared only grow with the set.
class VictimSearch::OnNode {
 public:
  OnNode(VictimSearch& search, Candidates candidates, const NodeNeed& need, Best& best)
      : search_(search), candidates_(std::move(candidates)), need_(need), best_(best) {
    std::ranges::sort(candidates_, {}, [](const Candidate& c) {
      return std::tuple(c.stops, c.lost_ms, c.victim->attempt);
    });
  }

  void run() {
    if (!could_be_met(0, need_)) return;
    if (candidates_.size() <= search_.options_.max_exact) {
      branch(0, need_, {});
    } else {
      take_cheapest();
    }
  }

 private:
  struct Sum {
    std::uint32_t stops = 0;
    std::int64_t lost_ms = 0;
  };
  bool is_worse(const Sum& sum) const {
    return best_.cost &&
           std::tuple(sum.stops, sum.lost_ms) > std::tuple(best_.cost->stops, best_.cost->lost_ms);
  }

  // Decides about the candidates from `index` on; `have`: with what the chosen give back.
  void branch(std::size_t index, const NodeNeed& have, const Sum& sum) {
    if (search_.steps_left_ == 0 || is_worse(sum)) return;
    --search_.steps_left_;
    if (!chosen_.empty() && have.is_met() && is_settled()) return;
    if (index == candidates_.size() || !could_be_met(index, have)) return;
    NodeNeed with = have;
    const Candidate& candidate = candidates_[index];
    with.give_back(*candidate.victim);
    chosen_.push_back(candidate);
    branch(index + 1, with,
           {std::max(sum.stops, candidate.stops), sum.lost_ms + candidate.lost_ms});
    chosen_.pop_back();
    branch(index + 1, have, sum);
  }

  bool could_be_met(std::size_t index, NodeNeed have) const {
    for (std::size_t i = index; i < candidates_.size(); ++i) {
      have.give_back(*candidates_[i].victim);
    }
    return have.is_met();
  }

  void take_cheapest() {
    NodeNeed have = need_;
    for (const Candidate& candidate : candidates_) {
      have.give_back(*candidate.victim);
      chosen_.push_back(candidate);
      if (have.is_met() && is_settled()) return;
    }
  }

  // Returns whether more victims beside the chosen ones are useless: these suffice, or cost too
  // much already.
  bool is_settled() {
    Cost cost = search_.cost_of(chosen_);
    if (best_.cost && *best_.cost <= cost) return true;
    std::optional<model::Allocation> allocation = search_.look(chosen_);
    if (!allocation) return false;
    best_.offer(std::move(cost), chosen_, *std::move(allocation));
    return true;
  }

  VictimSearch& search_;
  Candidates candidates_;
  const NodeNeed& need_;
  Best& best_;
  Candidates chosen_;
};

bool VictimSearch::is_candidate(const Victim& victim) const {
  if (taken_.contains(victim.attempt)) return false;
  if (is_reclaim()) {
    return victim.is_borrowed && victim.started_at + victim.reclaim_min_runtime <= options_.now &&
           std::ranges::find(beneficiary_->pools, victim.pool) != beneficiary_->pools.end();
  }
  const bool is_of_age = victim.started_at + victim.preempt_min_runtime <= options_.now;
  return is_of_age && is_below_or_overdue(victim);
}

// By class or as an overdue job, however long it has run.
bool VictimSearch::is_below_or_overdue(const Victim& victim) const {
  if (!victim.yields_to_class) return false;
  if (model::is_below(victim.priority_class, beneficiary_->priority_class)) return true;
  return beneficiary_->rule == model::PreemptionRule::kOverdue && victim.yields_to_overdue &&
         victim.priority_class == beneficiary_->priority_class && victim.team != beneficiary_->team;
}

bool VictimSearch::is_reclaim() const {
  return beneficiary_->rule == model::PreemptionRule::kReclaim;
}

// The youngest first, of those that are reclaimed those never stopped before. `visit` gets also
// what a set of those alone that come later costs at least.
template <class Visit>
void VictimSearch::for_each_candidate_while(const Visit& visit) {
  std::size_t left = options_.max_walk;
  const base::GpuShare least_share = index_.least_share();
  const auto visit_if_candidate = [&](const Victim& victim, const LeastCost& least) {
    if (left-- == 0) return false;
    return !is_candidate(victim) || visit(victim, least);
  };
  if (is_reclaim()) {
    return index_.for_each_borrowed_while(
        options_.now, beneficiary_->pools, [&](const Victim& victim, base::Duration later) {
          return visit_if_candidate(victim,
                                    {candidate_of(victim).stops,
                                     gpu_time_ms(base::whole_milliseconds(later), least_share)});
        });
  }
  const auto own = beneficiary_->priority_class;
  const bool is_overdue = beneficiary_->rule == model::PreemptionRule::kOverdue;
  index_.for_each_of_age_while(
      options_.now, is_overdue ? VictimIndex::from(own) : VictimIndex::below(own),
      [&](const Victim& victim) {
        return visit_if_candidate(victim,
                                  {0, gpu_time_ms(age_ms(victim, options_.now), least_share)});
      });
}

VictimSearch::Candidate VictimSearch::candidate_of(const Victim& victim) const {
  const std::uint32_t stops = is_reclaim() ? std::min(victim.stops, VictimIndex::kMaxStopRows) : 0;
  return {&victim, lost_ms(victim, options_.now), stops};
}

VictimSearch::Cost VictimSearch::cost_of(const Candidates& victims) const {
  Cost cost;
  cost.victims = victims.size();
  for (const Candidate& each : victims) {
    const Victim& victim = *each.victim;
    cost.stops = std::max(cost.stops, each.stops);
    cost.lost_ms += each.lost_ms;
    const int importance = -static_cast<int>(victim.priority_class);
    cost.importance = cost.ids.empty() ? importance : std::max(cost.importance, importance);
    cost.age_ms = std::max(cost.age_ms, age_ms(victim, options_.now));
    cost.ids.push_back(victim.attempt);
  }
  std::ranges::sort(cost.ids);
  return cost;
}

VictimSearch::Candidates VictimSearch::candidates_on(model::NodeId node) const {
  Candidates candidates;
  for (const model::AttemptId id : *index_.on(node)) {
    const Victim& victim = index_.find(id);
    if (is_candidate(victim)) candidates.push_back(candidate_of(victim));
  }
  return candidates;
}

// Returns where the beneficiary would start if these were gone.
std::optional<model::Allocation> VictimSearch::look(const Candidates& victims) {
  if (looks_left_ == 0) return std::nullopt;
  --looks_left_;
  const Trial::Mark mark = trial_.mark();
  for (const Candidate& each : victims) trial_.release(each.victim->allocation);
  std::optional<model::Allocation> allocation = (*placing_)();
  trial_.rollback_to(mark);
  return allocation;
}

// A node not seen yet has only candidates that come later.
void VictimSearch::search_nodes(Best& best) {
  std::set<model::NodeId> seen;
  for_each_candidate_while([&](const Victim& victim, const LeastCost& least) {
    const bool is_hopeless = best.cost && std::tuple(best.cost->stops, best.cost->lost_ms) <
                                              std::tuple(least.stops, least.lost_ms);
    if (is_hopeless || seen.size() >= options_.max_nodes || steps_left_ == 0) return false;
    for (const auto& part : victim.allocation.nodes) {
      if (!seen.insert(part.node).second) continue;
      const NodeNeed need(trial_, part.node, beneficiary_->request);
      if (need.is_up()) OnNode(*this, candidates_on(part.node), need, best).run();
    }
    return true;
  });
}

// Tries the youngest candidates on all nodes, twice as many each time, until the job fits. Of these
// it keeps the ones on the nodes that the job got.
void VictimSearch::search_across_nodes(Best& best) {
  Candidates victims;
  std::optional<model::Allocation> allocation;
  std::size_t next_look = 2;
  for_each_candidate_while([&](const Victim& victim, const LeastCost&) {
    victims.push_back(candidate_of(victim));
    if (victims.size() < next_look) return true;
    next_look *= 2;
    allocation = look(victims);
    return !allocation && victims.size() < options_.max_across_nodes;
  });
  if (!allocation && !victims.empty()) allocation = look(victims);
  if (!allocation) return;
  Candidates there = victims;
  std::erase_if(there, [&](const Candidate& each) {
    return std::ranges::none_of(each.victim->allocation.nodes, [&](const auto& part) {
      const auto& got = allocation->nodes;
      return std::ranges::find(got, part.node, &model::NodeAllocation::node) != got.end();
    });
  });
  best.offer(cost_of(there), there, *std::move(allocation));
}

// The one that was stopped most often, or loses most, is spared first.
void VictimSearch::drop_superfluous(Best& best) {
  std::ranges::sort(best.victims, [](const Candidate& a, const Candidate& b) {
    return std::tuple(b.stops, b.lost_ms, b.victim->attempt) <
           std::tuple(a.stops, a.lost_ms, a.victim->attempt);
  });
  for (std::size_t i = 0; i < best.victims.size() && best.victims.size() > 1;) {
    Candidates fewer = best.victims;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    std::optional<model::Allocation> allocation = look(fewer);
    if (allocation) {
      best.victims = std::move(fewer);
      best.allocation = *std::move(allocation);
    } else {
      ++i;
    }
  }
}

Timeline::Sooner VictimSearch::stoppable_from(const Beneficiary& beneficiary) {
  beneficiary_ = &beneficiary;
  Timeline::Sooner from;
  std::size_t left = options_.max_walk;
  index_.for_each_while(VictimIndex::from(beneficiary.priority_class), [&](const Victim& victim) {
    if (left-- == 0) return false;
    if (taken_.contains(victim.attempt) || !is_below_or_overdue(victim)) {
      return true;
    }
    const base::Instant at = victim.started_at + victim.preempt_min_runtime;
    from[victim.attempt] = {std::max(options_.now, at), &victim.allocation};
    return true;
  });
  return from;
}

std::optional<Fit> VictimSearch::find(const Beneficiary& beneficiary, const Placing& placing) {
  beneficiary_ = &beneficiary;
  placing_ = &placing;
  steps_left_ = options_.max_steps;
  looks_left_ = options_.max_looks;
  Best best;
  search_nodes(best);
  if (!best.cost) search_across_nodes(best);
  if (!best.cost) return std::nullopt;
  looks_left_ += best.victims.size() + 1;  // so that what was found is always minimal
  drop_superfluous(best);
  Fit fit{std::move(best.allocation), {}};
  for (const Candidate& each : best.victims) fit.victims.push_back(each.victim->attempt);
  std::ranges::sort(fit.victims);
  return fit;
}

void VictimSearch::take(const std::vector<model::AttemptId>& victims) {
  taken_.insert(victims.begin(), victims.end());
}

}  // namespace gpu_platform::scheduling
