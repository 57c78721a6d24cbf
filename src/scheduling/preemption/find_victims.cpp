#include "scheduling/preemption/find_victims.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <tuple>
#include <utility>

#include "scheduling/placement/demand.h"
#include "scheduling/placement/gpu_filter.h"

namespace gpu_platform::scheduling {

// In the order of deciding; the smallest is the cheapest.
struct VictimSearch::Cost {
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

// What a job on one node cannot do without there, counted without regard to where GPUs lie.
class NodeNeed {
 public:
  NodeNeed(const Trial& trial, model::NodeId node, const model::ResourceRequest& request)
      : node_(node), gpus_(request.gpus) {
    const Cluster::NodeRecord* record = trial.cluster().find(node);
    if (record == nullptr || !record->free.is_up) return;
    is_up_ = true;
    free_ = record->free;
    const NodeShape& shape = *record->shape_class->shape;
    demand_ = demand_on(request, {.cpus = shape.cpus,
                                  .memory = shape.memory,
                                  .gpus = static_cast<std::uint32_t>(shape.gpus.size())});
    GpuMask accepted = 0;
    GpuFilter(request, trial.cluster().types())
        .for_each_type(*record->shape_class, [&](GpuMask of_type) { accepted |= of_type; });
    usable_ = accepted & record->in_service;
  }

  bool is_up() const { return is_up_; }
  void give_back(const Victim& victim) {
    for (const auto& part : victim.allocation.nodes) {
      if (part.node != node_) continue;
      free_.gpus |= gpus_of(part);
      free_.cpus += part.cpus;
      free_.memory += part.memory;
    }
  }
  bool is_met() const {
    return is_up_ && static_cast<std::uint32_t>(std::popcount(free_.gpus & usable_)) >= gpus_ &&
           free_.cpus >= demand_.cpus && free_.memory >= demand_.memory;
  }

 private:
  model::NodeId node_;
  std::uint32_t gpus_ = 0;
  bool is_up_ = false;
  FreeState free_;
  GpuMask usable_ = 0;
  Demand demand_;
};

}  // namespace

// The cheapest subset of one node's candidates, by branch and bound: those that cost least first,
// and nothing is followed that costs more already than the best set known of any node.
class VictimSearch::OnNode {
 public:
  OnNode(VictimSearch& search, Candidates candidates, const NodeNeed& need, Best& best)
      : search_(search), candidates_(std::move(candidates)), need_(need), best_(best) {
    std::ranges::sort(candidates_, {},
                      [](const Candidate& c) { return std::tuple(c.lost_ms, c.victim->attempt); });
  }

  void run() {
    if (!could_be_met(0, need_)) return;
    if (candidates_.size() <= search_.options_.max_exact) {
      branch(0, need_, 0);
    } else {
      take_cheapest();
    }
  }

 private:
  bool is_worse(std::int64_t lost_ms) const { return best_.cost && lost_ms > best_.cost->lost_ms; }

  // Decides about the candidates from `index` on; `have`: with what the chosen give back.
  void branch(std::size_t index, const NodeNeed& have, std::int64_t lost_ms) {
    if (search_.steps_left_ == 0 || is_worse(lost_ms)) return;
    --search_.steps_left_;
    if (!chosen_.empty() && have.is_met() && is_settled()) return;
    if (index == candidates_.size() || !could_be_met(index, have)) return;
    NodeNeed with = have;
    with.give_back(*candidates_[index].victim);
    chosen_.push_back(candidates_[index]);
    branch(index + 1, with, lost_ms + candidates_[index].lost_ms);
    chosen_.pop_back();
    branch(index + 1, have, lost_ms);
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

  // Whether more victims beside those chosen can be of no use: these make room, or cost too much
  // already.
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
  if (beneficiary_->reclaims) return victim.is_borrowed;
  return victim.yields_to_class && victim.started_at + options_.min_runtime <= options_.now &&
         model::is_below(victim.priority_class, beneficiary_->priority_class);
}

// The youngest first; those that another search took, too.
template <class Visit>
void VictimSearch::for_each_candidate_while(const Visit& visit) const {
  if (beneficiary_->reclaims) return index_.for_each_borrowed_while(visit);
  index_.for_each_while(options_.now, options_.min_runtime, beneficiary_->priority_class, visit);
}

VictimSearch::Candidate VictimSearch::candidate_of(const Victim& victim) const {
  const std::int64_t gpus = std::max<std::int64_t>(1, victim.allocation.gpu_count());
  return {&victim, age_ms(victim, options_.now) * gpus};
}

VictimSearch::Cost VictimSearch::cost_of(const Candidates& victims) const {
  Cost cost;
  cost.victims = victims.size();
  for (const Candidate& each : victims) {
    const Victim& victim = *each.victim;
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

// Where the beneficiary would start if these were gone.
std::optional<model::Allocation> VictimSearch::look(const Candidates& victims) {
  if (looks_left_ == 0) return std::nullopt;
  --looks_left_;
  const Trial::Mark mark = trial_.mark();
  for (const Candidate& each : victims) trial_.release(each.victim->allocation);
  std::optional<model::Allocation> allocation = (*placing_)();
  trial_.rollback_to(mark);
  return allocation;
}

// A node not seen yet has only candidates at least as old as the one that the walk is at, so a set
// there loses at least that one's age.
void VictimSearch::search_nodes(Best& best) {
  std::set<model::NodeId> seen;
  for_each_candidate_while([&](const Victim& victim) {
    const bool is_hopeless = best.cost && best.cost->lost_ms < age_ms(victim, options_.now);
    if (is_hopeless || seen.size() >= options_.max_nodes || steps_left_ == 0) return false;
    if (taken_.contains(victim.attempt)) return true;
    for (const auto& part : victim.allocation.nodes) {
      if (!seen.insert(part.node).second) continue;
      const NodeNeed need(trial_, part.node, beneficiary_->request);
      if (need.is_up()) OnNode(*this, candidates_on(part.node), need, best).run();
    }
    return true;
  });
}

// The youngest candidates wherever they are, twice as many each time, until the job fits; of these,
// those on the nodes that it got.
void VictimSearch::search_across_nodes(Best& best) {
  Candidates victims;
  std::optional<model::Allocation> allocation;
  std::size_t next_look = 2;
  for_each_candidate_while([&](const Victim& victim) {
    if (taken_.contains(victim.attempt)) return true;
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

// Whoever loses most is spared first.
void VictimSearch::drop_superfluous(Best& best) {
  std::ranges::sort(best.victims, [](const Candidate& a, const Candidate& b) {
    return std::tuple(b.lost_ms, b.victim->attempt) < std::tuple(a.lost_ms, a.victim->attempt);
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
  taken_.insert(fit.victims.begin(), fit.victims.end());
  return fit;
}

}  // namespace gpu_platform::scheduling
