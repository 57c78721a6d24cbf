#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "controller/invariants.h"
#include "controller/virtual_site_fixture.h"

// What is guaranteed to a team is never kept back by others' borrowed work for longer than the
// grace, whatever the classes, the order and the load.

namespace gpu_platform::controller {
namespace {

constexpr base::Duration kGrace = base::seconds(30);
constexpr std::uint32_t kTeams = 3;

std::string team_name(std::uint64_t number) {
  return "team" + std::to_string(number);
}

// Nodes whose GPUs are all guaranteed to teams. These ask for single GPUs, so that what they are
// owed always fits; others, who own nothing, for whole nodes.
class Site : public testing::VirtualSite {
 public:
  explicit Site(std::uint64_t seed) : VirtualSite(seed, 3) {
    model::Policy policy;
    policy.stop_grace = kGrace;
    policy.order = static_cast<model::QueueOrder>(seed % model::kQueueOrders);
    policy.max_queue_size = 100'000;
    policy.backfill_depth = static_cast<std::uint32_t>(1 + random().below(3));
    std::uint64_t left = nodes() * kGpusOfNode;
    model::Organisation organisation;
    for (std::uint64_t i = 0; i < kTeams; ++i) {
      const std::uint64_t own = i + 1 == kTeams ? left : random().below(left + 1);
      left -= own;
      organisation.teams.push_back({team_name(i),
                                    {},
                                    1,
                                    {{"ann", 1}},
                                    {.guaranteed_gpus = static_cast<std::uint32_t>(own)}});
      guaranteed_[team_name(i)] = own;
    }
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
      }
      submit(spec);
    }
  }

  void pass(base::Duration time) {
    VirtualSite::pass(time, [this] { check_owed(); });
  }

  std::uint64_t reclaimed() const { return reclaimed_; }
  base::Duration longest_owed() const { return longest_owed_; }

 private:
  // Since when each team holds less than is guaranteed to it, waits, and nothing of it starts.
  void check_owed() {
    std::map<std::string, std::uint64_t> held;
    std::map<std::string, bool> waits;
    state().jobs.for_each([&](std::uint64_t, const model::Job& job) {
      waits[job.spec->team] |= job.state == model::JobState::kQueued;
      held[job.spec->team] += model::holds_resources(job) ? 1 : 0;
    });
    for (const auto& [team, own] : guaranteed_) {
      const bool is_owed = waits[team] && held[team] < own;
      if (!is_owed || started_[team]) owed_since_[team].reset();
      if (is_owed && !owed_since_[team]) owed_since_[team] = now();
      if (is_owed) longest_owed_ = std::max(longest_owed_, now() - *owed_since_[team]);
    }
    started_.clear();
  }

  void on_start(const execution::StartOrder& start) override { started_[start.spec->team] = true; }
  void on_stop(const execution::StopOrder& stop) override {
    const model::Job& victim = *state().jobs.find(stop.attempt.job.value);
    reclaimed_ += victim.attempts.back().is_borrowed ? 1 : 0;
  }

  std::map<std::string, std::uint64_t> guaranteed_;
  std::map<std::string, std::optional<base::Instant>> owed_since_;
  std::map<std::string, bool> started_;
  base::Duration longest_owed_;
  std::uint64_t reclaimed_ = 0;
};

TEST(Reclaim, NoGuaranteeIsKeptBackForLongerThanTheGrace) {
  std::uint64_t reclaimed = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Site site(seed);
    for (int i = 0; i < 60; ++i) {
      site.submit_some();
      site.pass(base::seconds(static_cast<std::int64_t>(1 + site.random().below(600))));
      ASSERT_LE(site.longest_owed(), kGrace + base::seconds(1)) << "seed " << seed << " step " << i;
      if (i % 10 == 0) {
        ASSERT_EQ(check_invariants(site.state()), std::vector<std::string>()) << "seed " << seed;
      }
    }
    reclaimed += site.reclaimed();
  }
  EXPECT_GT(reclaimed, 100U);
}

}  // namespace
}  // namespace gpu_platform::controller
