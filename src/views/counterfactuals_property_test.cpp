#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "controller/virtual_site_fixture.h"
#include "model/job_spec.h"
#include "views/explanation.h"

// All that `explain` offers holds: a waiting job that is changed as it says starts at once, and one
// that would start as it is does so. With two types of GPUs, guarantees by type, classes, overdue
// jobs, gangs, and jobs that are being stopped for others.

namespace gpu_platform::views {
namespace {

namespace testing = controller::testing;

using scheduling::Change;
using scheduling::Counterfactual;

class AskedSite : public testing::VirtualSite {
 public:
  explicit AskedSite(std::uint64_t seed) : VirtualSite(seed, 3) {
    model::Policy policy;
    policy.stop_grace = testing::kGrace;
    policy.order = static_cast<model::QueueOrder>(seed % model::kQueueOrders);
    policy.max_queue_size = 100'000;
    policy.max_queue_percent_per_user = 100;
    policy.backfill_depth = static_cast<std::uint32_t>(random().below(4));
    policy.overdue_after = base::minutes(random().chance(1, 2) ? 60 : 0);
    if (random().chance(2, 3)) policy.organisation = organisation();
    begin(policy);
  }

  void submit_some() {
    for (std::uint64_t n = random().below(4); n > 0; --n) {
      model::JobSpec spec = testing::spec(static_cast<std::uint32_t>(1 + random().below(8)));
      spec.request.cpus = static_cast<std::uint32_t>(1 + random().below(8));
      spec.request.memory = base::kGiB;
      if (random().chance(1, 8)) spec.request.nodes = 2;
      if (random().chance(1, 2)) spec.request.gpu_types = types();
      spec.priority = model::priority_of_number(static_cast<std::uint8_t>(random().below(10)));
      spec.time_limit = base::minutes(static_cast<std::int64_t>(1 + random().below(600)));
      spec.team = "team" + std::to_string(random().below(3));
      spec.preemptible = random().chance(1, 2);
      (void)try_submit(spec);
    }
  }

  // Asks about each waiting job, and tries what it is told.
  void ask() {
    std::vector<model::JobId> waiting;
    state().jobs.for_each([&](std::uint64_t, const model::Job& job) {
      if (job.state == model::JobState::kQueued) waiting.push_back(job.id);
    });
    for (const model::JobId id : waiting) {
      PlanningView view(snapshot());
      const Explanation found = explain_waiting(view, id, now(), Effort::kQuick);
      for (const Counterfactual& each : found.counterfactuals) try_out(id, each);
    }
  }

  std::uint64_t held = 0;
  std::vector<std::string> broken;

 private:
  static inline const std::string kTypes[] = {"H100-80GB", "A100-40GB"};

  std::vector<std::string> types() {
    if (random().chance(1, 2)) return {kTypes[0], kTypes[1]};
    return {kTypes[random().below(2)]};
  }
  void equip(std::uint64_t number, model::NodeInfo& info) override {
    if (number % 2 == 0) return;
    for (model::GpuInfo& gpu : info.gpus) gpu.type = kTypes[1];
  }
  model::Organisation organisation() {
    model::Organisation organisation;
    const bool is_by_type = random().chance(1, 2);
    for (std::uint64_t i = 0; i < 3; ++i) {
      organisation.teams.push_back({"team" + std::to_string(i), {}, 1, {{"ann", 1}}, {}});
      model::Quota& quota = organisation.teams.back().quota;
      const auto own = static_cast<std::uint32_t>(random().below(3));
      if (!is_by_type) quota.guaranteed_gpus = own;
      if (is_by_type) quota.gpu_types.push_back({kTypes[0], {}, own});
      if (is_by_type && nodes() > 1) quota.gpu_types.push_back({kTypes[1], {}, 2});
    }
    return organisation;
  }

  void try_out(model::JobId id, const Counterfactual& offered) {
    auto copy = controller::decode_state(controller::encode_state(state()));
    ASSERT_TRUE(copy) << copy.error().message;
    controller::Core tried(*std::move(copy));
    model::UpdateJob update{.job = id, .to = patch_of(offered), .remove_labels = {}, .ended = {}};
    const auto reply =
        tried.command({testing::kAdministrator, update}, now(), store::Headroom::kAmple);
    ASSERT_TRUE(reply) << reply.error().message;
    tried.advance(now());
    const model::Job* job = tried.state().jobs.find(id.value);
    if (job->state == model::JobState::kStarting) {
      ++held;
    } else {
      broken.push_back("job " + std::to_string(id.value) + " " + option_of(offered));
    }
  }

  static model::SpecPatch patch_of(const Counterfactual& offered) {
    model::SpecPatch to;
    switch (offered.change) {
      case Change::kGpus:
        return to.set(&model::ResourceRequest::gpus, offered.request.gpus);
      case Change::kGpuShare:
        break;  // no update changes a share, and no job here has a part
      case Change::kGpuTypes:
        return to.set(&model::ResourceRequest::gpu_types, offered.request.gpu_types);
      case Change::kGpuMemory:
        return to.set(&model::ResourceRequest::gpu_memory, offered.request.gpu_memory);
      case Change::kNuma:
        return to.set(&model::ResourceRequest::numa, offered.request.numa);
      case Change::kCapacity:
        return to.set(&model::ResourceRequest::capacity, offered.request.capacity);
      case Change::kDegraded:
        return to.set(&model::ResourceRequest::accept_degraded, true);
      case Change::kCpus:
        return to.set(&model::ResourceRequest::cpus, offered.request.cpus);
      case Change::kMemory:
        return to.set(&model::ResourceRequest::memory, offered.request.memory);
      case Change::kTimeLimit:
        return to.set(&model::JobSpec::time_limit, offered.time_limit);
      case Change::kPreemptible:
        return to.set(&model::JobSpec::preemptible, true);
    }
    return to;
  }
};

TEST(Counterfactuals, HoldWhenTheyAreCarriedOut) {
  std::uint64_t held = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    AskedSite site(seed);
    for (int step = 0; step < 12; ++step) {
      site.submit_some();
      site.pass(base::seconds(static_cast<std::int64_t>(1 + site.random().below(3600))), [] {});
      site.ask();
      ASSERT_EQ(site.broken, std::vector<std::string>()) << "seed " << seed << " step " << step;
    }
    held += site.held;
  }
  EXPECT_GT(held, 500U);
}

}  // namespace
}  // namespace gpu_platform::views
