#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "controller/virtual_site_fixture.h"
#include "model/job_spec.h"

namespace gpu_platform::controller::testing {

// A site with all the rules by which jobs are stopped for others at once: classes, guarantees,
// overdue jobs, and jobs that were let in by their prediction. In half of the worlds there are GPUs
// of two types, and guarantees by type.
class PreemptionSite : public VirtualSite {
 public:
  explicit PreemptionSite(std::uint64_t seed) : VirtualSite(seed, 3) {
    model::Policy policy;
    policy.stop_grace = kGrace;
    policy.order = static_cast<model::QueueOrder>(seed % model::kQueueOrders);
    policy.max_queue_size = 100'000;
    policy.backfill_depth = static_cast<std::uint32_t>(random().below(4));
    policy.preempt_below =
        random().chance(1, 2) ? model::PriorityClass::kMedium : model::PriorityClass::kHigh;
    policy.preempt_min_runtime = minutes_below(15);
    policy.reclaim_min_runtime = random().chance(1, 2) ? base::Duration() : minutes_below(15);
    policy.max_preemptions_per_job = max_preemptions_ = 1 + number_below(5);
    policy.max_reclaims_per_job = max_reclaims_ = 1 + number_below(5);
    policy.overdue_after = base::minutes(static_cast<std::int64_t>(5 + random().below(60)));
    // If a job is overdue most of the time, none is let in by its prediction.
    if (seed % 3 == 0) policy.overdue_after = {};
    has_types_ = random().chance(1, 2);
    if (random().chance(4, 5)) policy.organisation = has_types_ ? by_type() : guarantees();
    begin(policy);
  }

  void submit_some() {
    for (std::uint64_t n = random().below(5); n > 0; --n) {
      const std::uint64_t most = has_types_ ? 4 : 8;
      model::JobSpec spec = testing::spec(1 + number_below(random().chance(1, 3) ? most : 3));
      if (has_types_ && random().chance(1, 2)) {
        spec.request.gpu_types = {random().chance(1, 2) ? "H100" : "A100"};
        if (random().chance(1, 3)) spec.request.gpu_types = {"A100", "H100"};
      }
      spec.request.cpus = 1;
      spec.request.memory = base::kGiB;
      spec.priority = model::priority_of_number(static_cast<std::uint8_t>(random().below(10)));
      spec.time_limit = base::minutes(static_cast<std::int64_t>(1 + random().below(600)));
      if (random().chance(1, 2)) spec.preemptible = random().chance(3, 4);
      if (random().chance(1, 3)) spec.expected_time = base::minutes(1);
      if (random().chance(3, 4)) spec.team = "team" + std::to_string(random().below(3));
      submit(spec);
    }
  }

  // Attempts that others were stopped for never count as borrowed.
  void check_borrowers() {
    for (const model::AttemptId id : state().held_attempts) {
      if (!stops_above_.contains(id) || !find_attempt(state(), id)->is_borrowed) continue;
      broken.push_back("job " + std::to_string(id.job.value) + " can be reclaimed");
    }
  }

  std::uint64_t reclaimed_by_type = 0;
  std::vector<std::string> broken;
  std::map<model::PreemptionRule, std::uint64_t> stopped;
  std::uint64_t let_in = 0;   // stopped because their prediction was wrong
  std::uint64_t chained = 0;  // stopped although others had been stopped for them

 private:
  std::uint32_t number_below(std::uint64_t n) {
    return static_cast<std::uint32_t>(random().below(n));
  }
  base::Duration minutes_below(std::uint64_t n) {
    return base::minutes(static_cast<std::int64_t>(random().below(n)));
  }
  model::Organisation guarantees() {
    model::Organisation organisation;
    std::uint64_t left = nodes() * kGpusOfNode;
    for (int i = 0; i < 3; ++i) {
      const auto own = static_cast<std::uint32_t>(random().below(left + 1));
      left -= own;
      organisation.teams.push_back(
          {"team" + std::to_string(i), {}, 1, {{"ann", 1}}, {.guaranteed_gpus = own}});
      if (random().chance(1, 4))
        organisation.teams.back().quota.over_quota_weight = number_below(4);
    }
    return organisation;
  }

  // Every other node has both types, four GPUs each.
  static constexpr std::uint32_t kOfEach = kGpusOfNode / 2;
  void equip(std::uint64_t number, model::NodeInfo& info) override {
    if (!has_types_ || number % 2 == 1) return;
    for (std::uint32_t i = 0; i < kOfEach; ++i) info.gpus[i].type = "A100-40GB";
  }
  // Guarantees of either type, or of one type and of all GPUs.
  model::Organisation by_type() {
    model::Organisation organisation;
    const std::uint64_t a100 = (nodes() + 1) / 2 * kOfEach;
    std::uint64_t left[] = {a100, nodes() * kGpusOfNode - a100};
    const bool is_common = random().chance(1, 2);
    for (int i = 0; i < 3; ++i) {
      std::uint32_t own[2];
      for (int pool = 0; pool < 2; ++pool) {
        own[pool] = number_below(left[pool] + 1);
        left[pool] -= own[pool];
      }
      model::Quota quota{.gpu_types = {{"A100", {}, own[0]}, {"H100-80GB", {}, own[1]}}};
      if (is_common) {
        quota.gpu_types.erase(quota.gpu_types.begin());
        quota.guaranteed_gpus = own[0] + own[1];
      }
      organisation.teams.push_back({"team" + std::to_string(i), {}, 1, {{"ann", 1}}, quota});
    }
    return organisation;
  }

  std::string pool_of(const std::string& gpu_type) const {
    const auto* pool = state().books->lending.of_type(gpu_type);
    return pool == nullptr ? "none" : pool->first;
  }
  // A holder gets back GPUs of the pool in which it lends them, and no others.
  void check_pools(const model::PreemptionDecided& decided) {
    if (decided.rule != model::PreemptionRule::kReclaim) return;
    const model::NodeAllocation& part = decided.held.nodes.front();
    const model::Node& node = *state().nodes.find(part.node.value);
    const std::string pool = pool_of(node.gpus.at(part.grants.front().gpu_index).info.type);
    reclaimed_by_type += pool.empty() ? 0 : 1;
    for (const model::AttemptId victim : decided.victims) {
      if (pool_of(find_attempt(state(), victim)->gpu_type) == pool) continue;
      broken.push_back("job " + std::to_string(victim.job.value) + " is reclaimed for pool " +
                       pool);
    }
  }

  model::PriorityClass class_of(model::JobId job) const {
    return find_job(state(), job)->spec->priority.priority_class;
  }

  void on_event(const model::Event& event) override {
    if (const auto* decided = std::get_if<model::PreemptionDecided>(&event)) {
      for (const model::AttemptId victim : decided->victims) rules_[victim] = decided->rule;
      check_pools(*decided);
    } else if (const auto* stop = std::get_if<model::StopRequested>(&event)) {
      if (stop->reason == model::EndReason::kPreempted) on_preemption(*stop);
    } else if (const auto* start = std::get_if<model::StartRequested>(&event)) {
      const auto found = stopped_for_.find(start->attempt.job);
      if (found == stopped_for_.end()) return;
      stops_above_[start->attempt] = model::higher(class_of(start->attempt.job), found->second);
      stopped_for_.erase(found);
    }
  }

  void on_preemption(const model::StopRequested& stop) {
    const model::JobId victim = stop.attempt.job;
    model::PriorityClass above = class_of(victim);
    const auto settled = stops_above_.find(stop.attempt);
    if (settled != stops_above_.end()) {
      ++chained;
      above = model::higher(above, settled->second);
      if (!model::is_below(settled->second, class_of(stop.stopped_for))) {
        broken.push_back("job " + std::to_string(victim.value) + " is stopped in turn for job " +
                         std::to_string(stop.stopped_for.value));
      }
    }
    const auto [entry, is_first] = stopped_for_.emplace(stop.stopped_for, above);
    if (!is_first) entry->second = model::higher(entry->second, above);
    const bool is_let_in = find_attempt(state(), stop.attempt)->yields_at.is_set();
    if (is_let_in && !rules_.contains(stop.attempt)) {
      ++let_in;
    } else {
      ++stopped[rules_.at(stop.attempt)];
    }
    if (++stops_[victim] > std::max(max_preemptions_, max_reclaims_)) {
      broken.push_back("job " + std::to_string(victim.value) + " is stopped too often");
    }
  }

  // Those that state a time mostly keep to it: once it is known that they do not, no prediction
  // lets them in.
  base::Duration run_time(const execution::StartOrder& start) override {
    const auto& expected = state().jobs.find(start.attempt.job.value)->spec->expected_time;
    if (!expected || random().chance(1, 20)) return VirtualSite::run_time(start);
    return std::min(*expected, start.time_limit);
  }

  bool has_types_ = false;
  std::uint32_t max_preemptions_ = 0;
  std::uint32_t max_reclaims_ = 0;
  std::map<model::AttemptId, model::PreemptionRule> rules_;
  std::map<model::JobId, model::PriorityClass> stopped_for_;
  std::map<model::AttemptId, model::PriorityClass> stops_above_;
  std::map<model::JobId, std::uint32_t> stops_;
};

}  // namespace gpu_platform::controller::testing
