#include <map>
#include <string>

#include <gtest/gtest.h>

#include "controller/invariants.h"
#include "controller/virtual_site_fixture.h"
#include "model/job_spec.h"

// In a saturated world the GPUs beyond guarantees are used in proportion to the weights of the
// teams, for any order of the queue, classes and order of submission.

namespace gpu_platform::controller {
namespace {

constexpr std::uint32_t kWeights[] = {1, 2, 5};
constexpr std::size_t kWaiting = 30;  // of each team, always

class SurplusSite : public testing::VirtualSite {
 public:
  SurplusSite(std::uint64_t seed, bool by_weight) : VirtualSite(seed, 6) {
    model::Policy policy;
    policy.order = static_cast<model::QueueOrder>(seed % model::kQueueOrders);
    policy.max_queue_size = 100'000;
    policy.overdue_after = base::Duration();
    model::Organisation organisation;
    for (std::size_t i = 0; i < std::size(kWeights); ++i) {
      const auto own = static_cast<std::uint32_t>(random().below(2));
      model::Quota quota{.guaranteed_gpus = own};
      if (by_weight) quota.over_quota_weight = kWeights[i];
      organisation.teams.push_back({name_of(i), {}, 1, {{"ann", 1}}, quota});
      guaranteed_[name_of(i)] = own;
      surplus_ += own;
    }
    surplus_ = nodes() * kGpusOfNode - surplus_;
    policy.organisation = std::move(organisation);
    begin(policy);
  }

  // The team of the least weight always comes first, and has the highest class.
  void saturate() {
    std::map<std::string, std::size_t> waiting;
    state().jobs.for_each([&](std::uint64_t, const model::Job& job) {
      if (job.state == model::JobState::kQueued) ++waiting[job.spec->team];
    });
    for (std::size_t i = 0; i < std::size(kWeights); ++i) {
      while (waiting[name_of(i)]++ < kWaiting) {
        model::JobSpec spec = testing::spec(1);
        spec.request.cpus = 1;
        spec.request.memory = base::kGiB;
        spec.team = name_of(i);
        spec.priority = model::priority_of_number(static_cast<std::uint8_t>(3 * i));
        spec.preemptible = false;
        spec.time_limit = base::minutes(60);
        submit(spec);
      }
    }
  }

  void measure() {
    std::map<std::string, std::uint64_t> held;
    state().jobs.for_each([&](std::uint64_t, const model::Job& job) {
      if (model::holds_resources(job)) ++held[job.spec->team];
    });
    for (const auto& [team, gpus] : held) {
      above_[team] += gpus > guaranteed_[team] ? gpus - guaranteed_[team] : 0;
    }
  }

  double part_of(std::size_t team) const {
    double all = 0;
    for (const auto& [name, gpus] : above_) all += static_cast<double>(gpus);
    const auto found = above_.find(name_of(team));
    return found == above_.end() ? 0 : static_cast<double>(found->second) / all;
  }
  std::uint64_t surplus() const { return surplus_; }

 private:
  static std::string name_of(std::size_t team) { return "team" + std::to_string(team); }

  std::map<std::string, std::uint64_t> guaranteed_;
  std::map<std::string, std::uint64_t> above_;
  std::uint64_t surplus_ = 0;
};

TEST(Surplus, IsUsedInProportionToWeightsInASaturatedWorld) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SurplusSite site(seed, true);
    for (int step = 0; step < 60; ++step) {
      site.saturate();
      site.pass(base::minutes(10), [] {});
      if (step >= 12) site.measure();
      ASSERT_EQ(check_invariants(site.state()), std::vector<std::string>()) << "seed " << seed;
    }
    // Each team may be above its share by less than one job, at the cost of the others.
    const auto surplus = static_cast<double>(site.surplus());
    for (std::size_t i = 0; i < std::size(kWeights); ++i) {
      const double gpus = site.part_of(i) * surplus;
      const double share = kWeights[i] / 8.0 * surplus;
      EXPECT_LT(gpus, share + 1) << "seed " << seed << " team " << i;
      EXPECT_GT(gpus, share - 2) << "seed " << seed << " team " << i;
    }
  }
}

// So the test can fail: the classes decide.
TEST(Surplus, GoesToTheFirstInTheQueueWithoutWeights) {
  SurplusSite site(4, false);
  for (int step = 0; step < 30; ++step) {
    site.saturate();
    site.pass(base::minutes(10), [] {});
    if (step >= 12) site.measure();
  }
  EXPECT_GT(site.part_of(0), 0.9);
}

}  // namespace
}  // namespace gpu_platform::controller
