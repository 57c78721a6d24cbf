#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "controller/invariants.h"
#include "controller/virtual_site_fixture.h"
#include "model/job_spec.h"

// Borrowed work never keeps a team's guarantee back for longer than the grace, for any
// classes, order and load. The exception is work that was stopped as often as is allowed.

namespace gpu_platform::controller {
namespace {

using testing::kGrace;

constexpr std::uint32_t kTeams = 3;
constexpr std::uint32_t kAny = 1'000'000;  // so often jobs may be reclaimed

std::string team_name(std::uint64_t number) {
  return "team" + std::to_string(number);
}

// All GPUs of the nodes are guaranteed to teams, in half of the worlds by type. The teams ask for
// single GPUs, so that their guarantees always fit; users without a guarantee ask for whole nodes.
class ReclaimSite : public testing::VirtualSite {
 public:
  ReclaimSite(std::uint64_t seed, std::uint32_t max_reclaims) : VirtualSite(seed, 3) {
    model::Policy policy;
    policy.max_reclaims_per_job = max_reclaims;
    if (max_reclaims != kAny && random().chance(1, 2)) {
      policy.reclaim_min_runtime = min_runtime_ = base::minutes(5);
    }
    policy.stop_grace = kGrace;
    policy.order = static_cast<model::QueueOrder>(seed % model::kQueueOrders);
    policy.max_queue_size = 100'000;
    policy.backfill_depth = static_cast<std::uint32_t>(1 + random().below(3));
    if (random().chance(1, 2)) types_ = {kTypes[0], kTypes[1]};
    model::Organisation organisation;
    for (std::uint64_t i = 0; i < kTeams; ++i) {
      organisation.teams.push_back({team_name(i), {}, 1, {{"ann", 1}}, {}});
      if (random().chance(1, 4)) {
        organisation.teams.back().quota.over_quota_weight =
            static_cast<std::uint32_t>(random().below(4));
      }
    }
    for (const std::string& type : types_) guarantee(type, organisation.teams);
    policy.organisation = std::move(organisation);
    begin(policy);
  }

  void submit_some() {
    for (std::uint64_t n = random().below(5); n > 0; --n) {
      model::JobSpec spec = testing::spec(1);
      spec.request.cpus = 1;
      spec.request.memory = base::kGiB;
      spec.priority = model::priority_of_number(static_cast<std::uint8_t>(random().below(10)));
      spec.time_limit = base::minutes(static_cast<std::int64_t>(1 + random().below(600)));
      spec.team = team_name(random().below(kTeams));
      // Work of one team that cannot be stopped would turn other work of the team into borrowed.
      spec.preemptible = spec.team != team_name(0);
      if (random().chance(1, 3)) {
        spec.team.clear();
        spec.user = "guest";
        spec.uid = spec.gid = 1002;
        spec.preemptible = true;
        spec.request.gpus = static_cast<std::uint32_t>(1 + random().below(kGpusOfNode));
      } else if (types_.size() > 1) {
        spec.request.gpu_types = {kTypes[nodes() > 1 ? random().below(2) : 0]};
      }
      submit(spec);
    }
  }

  void pass(base::Duration time) {
    VirtualSite::pass(time, [this] { check_owed(); });
  }

  std::uint64_t reclaimed() const { return reclaimed_; }
  base::Duration longest_owed() const { return longest_owed_; }
  base::Duration min_runtime() const { return min_runtime_; }
  std::uint64_t spared() const { return spared_; }  // moments at which owners waited for such jobs
  std::uint32_t max_stops() const { return max_stops_; }

 private:
  static inline const std::string kTypes[] = {"H100-80GB", "A100-40GB"};

  void equip(std::uint64_t number, model::NodeInfo& info) override {
    if (types_.size() == 1 || number % 2 == 0) return;
    for (model::GpuInfo& gpu : info.gpus) gpu.type = kTypes[1];
  }

  // Shares out the GPUs of the type, or all of them.
  void guarantee(const std::string& type, std::vector<model::Team>& teams) {
    std::uint64_t left = kGpusOfNode * nodes();
    if (type == kTypes[0]) left = kGpusOfNode * ((nodes() + 1) / 2);
    if (type == kTypes[1]) left = kGpusOfNode * (nodes() / 2);
    for (model::Team& team : teams) {
      const bool is_last = &team == &teams.back();
      const auto own = static_cast<std::uint32_t>(is_last ? left : random().below(left + 1));
      left -= own;
      guaranteed_[{team.name, type}] = own;
      if (type.empty()) {
        team.quota.guaranteed_gpus = own;
      } else {
        team.quota.gpu_types.push_back({type, {}, own});
      }
    }
  }

  // A team and a pool.
  using Part = std::pair<std::string, std::string>;
  Part part_of(const model::JobSpec& spec) const {
    const auto& asked = spec.request.gpu_types;
    return {spec.team, asked.empty() ? std::string() : asked.front()};
  }

  // Since when each team holds less than is guaranteed to it, waits, and nothing of it starts.
  void check_owed() {
    std::map<Part, std::uint64_t> held;
    std::map<Part, bool> waits;
    state().jobs.for_each([&](std::uint64_t, const model::Job& job) {
      max_stops_ = std::max(max_stops_, job.preemptions);
      waits[part_of(*job.spec)] |= job.state == model::JobState::kQueued;
      held[part_of(*job.spec)] += model::holds_resources(job) ? 1 : 0;
    });
    for (const auto& [part, own] : guaranteed_) {
      // Work that was stopped too often to be stopped again holds more than is guaranteed to no
      // holder.
      const auto* pool = state().books->lending.of_type(part.second);
      const bool is_excused = pool->second.balance().firm_above() > pool->second.balance().shared();
      const bool is_owed = waits[part] && held[part] < own;
      if (!is_owed || started_[part] || is_excused) owed_since_[part].reset();
      if (is_owed && is_excused) ++spared_;
      if (is_owed && !owed_since_[part]) owed_since_[part] = now();
      if (is_owed) longest_owed_ = std::max(longest_owed_, now() - *owed_since_[part]);
    }
    started_.clear();
  }

  void on_start(const execution::StartOrder& start) override {
    started_[part_of(*start.spec)] = true;
  }
  void on_stop(const execution::StopOrder& stop) override {
    const model::Job& victim = *state().jobs.find(stop.attempt.job.value);
    reclaimed_ += victim.attempts.back().is_borrowed ? 1 : 0;
  }

  std::vector<std::string> types_ = {""};
  std::map<Part, std::uint64_t> guaranteed_;
  std::map<Part, std::optional<base::Instant>> owed_since_;
  std::map<Part, bool> started_;
  base::Duration min_runtime_;
  base::Duration longest_owed_;
  std::uint64_t spared_ = 0;
  std::uint32_t max_stops_ = 0;
  std::uint64_t reclaimed_ = 0;
};

class Reclaim : public ::testing::TestWithParam<std::uint32_t> {};

// But for jobs that were stopped as often as may be.
TEST_P(Reclaim, NoGuaranteeIsKeptBackForLongerThanTheGrace) {
  std::uint64_t reclaimed = 0;
  std::uint64_t spared = 0;
  std::uint32_t max_stops = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    ReclaimSite site(seed, GetParam());
    for (int i = 0; i < 60; ++i) {
      site.submit_some();
      site.pass(base::seconds(static_cast<std::int64_t>(1 + site.random().below(600))));
      ASSERT_LE(site.longest_owed(), site.min_runtime() + kGrace + base::seconds(1))
          << "seed " << seed << " step " << i;
      if (i % 10 == 0) {
        ASSERT_EQ(check_invariants(site.state()), std::vector<std::string>()) << "seed " << seed;
      }
    }
    reclaimed += site.reclaimed();
    spared += site.spared();
    max_stops = std::max(max_stops, site.max_stops());
  }
  EXPECT_GT(reclaimed, 100U);
  EXPECT_EQ(spared > 0, GetParam() != kAny);
  EXPECT_EQ(max_stops > 3, GetParam() == kAny) << max_stops;
}

INSTANTIATE_TEST_SUITE_P(Limits, Reclaim, ::testing::Values(kAny, 3, 1));

}  // namespace
}  // namespace gpu_platform::controller
