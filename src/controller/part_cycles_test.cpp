#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "controller/invariants.h"
#include "controller/virtual_site_fixture.h"
#include "model/job_spec.h"

// Parts of GPUs that are given and given back again and again, in both modes and to users of
// several teams, beside whole GPUs: nothing of them is left.

namespace gpu_platform::controller {
namespace {

struct User {
  const char* name;
  std::uint32_t uid;
  const char* team;
};
constexpr User kUsers[] = {{"ann", 1001, "red"}, {"bob", 1002, "red"}, {"cy", 1003, "blue"}};

class SharingSite : public testing::VirtualSite {
 public:
  explicit SharingSite(std::uint64_t seed) : VirtualSite(seed, 2) {
    model::Policy policy;
    policy.stop_grace = testing::kGrace;
    policy.backfill_depth = 0;  // plans of later starts would take most of the time
    policy.sharing.is_on = true;
    policy.sharing.between_users = model::SharedBetween::kTeam;
    policy.sharing.max_jobs = 4;
    policy.organisation = model::Organisation{
        .teams = {{"red", {}, 1, {{"ann", 1}, {"bob", 1}}, {}}, {"blue", {}, 1, {{"cy", 1}}, {}}}};
    begin(policy);
  }

  // So many that some of them wait.
  void submit_some() {
    while (state().jobs.size() < 16 * nodes()) submit(random_job());
  }
  void cancel_one() {
    const std::uint64_t last = state().last_job_id;
    const model::JobId job(last - random().below(std::min<std::uint64_t>(last, 20)));
    command({testing::kAdministrator, model::ActOnJob{job, model::JobAction::kCancel}});
  }
  // Until nothing waits or runs, for at most two days.
  void drain() {
    for (int hour = 0; hour < 48 && !state().jobs.empty(); ++hour) pass(base::hours(1), [] {});
  }

  std::uint64_t parts() const { return in_mode(model::ShareMode::kMps) + turns(); }
  std::uint64_t turns() const { return in_mode(model::ShareMode::kTimeSlice); }
  std::uint64_t beside_others() const { return beside_others_; }  // parts that joined other users'

 private:
  model::JobSpec random_job() {
    model::JobSpec spec = testing::spec(1);
    const User& user = kUsers[random().below(std::size(kUsers))];
    spec.user = user.name;
    spec.uid = spec.gid = user.uid;
    spec.team = user.team;
    spec.time_limit = base::minutes(static_cast<std::int64_t>(1 + random().below(10)));
    if (random().chance(1, 8)) return spec;  // a whole GPU
    model::ResourceRequest& request = spec.request;
    request.share_per_gpu = base::GpuShare(static_cast<std::int64_t>(1 + random().below(7)) * 875);
    const std::uint64_t mode = random().below(model::kShareModes);  // 0: as the site prefers
    if (mode != 0) request.share_mode = static_cast<model::ShareMode>(mode);
    if (random().chance(1, 3)) {
      request.gpu_memory = base::kGiB * static_cast<std::int64_t>(1 + random().below(40));
    }
    return spec;
  }

  void equip(std::uint64_t, model::NodeInfo& info) override {
    info.share_modes = {model::ShareMode::kTimeSlice, model::ShareMode::kMps};
    info.watches_gpu_memory = true;
  }
  void on_start(const execution::StartOrder& start) override {
    const model::Attempt& attempt = *find_attempt(state(), start.attempt);
    if (!model::is_part(attempt.allocation)) return;
    const model::NodeAllocation& on_node = attempt.allocation.nodes.front();
    const model::GpuGrant& grant = on_node.grants.front();
    ++started_.at(static_cast<std::size_t>(grant.mode));
    const model::Gpu& gpu = state().nodes.find(on_node.node.value)->gpus[grant.gpu_index];
    for (const model::GpuHolder& holder : gpu.holders) {
      if (holder.uid == attempt.allocation.tenant.uid) continue;
      ++beside_others_;
      return;
    }
  }
  std::uint64_t in_mode(model::ShareMode mode) const {
    return started_.at(static_cast<std::size_t>(mode));
  }

  std::array<std::uint64_t, model::kShareModes> started_{};
  std::uint64_t beside_others_ = 0;
};

TEST(PartCycles, LeaveNothingOfTenThousandParts) {
  constexpr std::uint64_t kParts = 10'000;
  SharingSite site(1);
  const std::uint64_t before = site.state().books->cluster.hash();
  for (std::uint64_t step = 0; site.parts() < kParts; ++step) {
    site.submit_some();
    if (step % 4 == 0) site.cancel_one();
    site.pass(base::minutes(2), [] {});
    ASSERT_LT(step, kParts) << "with " << site.parts() << " parts";
    if (step % 32 != 0) continue;
    ASSERT_EQ(check_invariants(site.state()), std::vector<std::string>()) << "step " << step;
  }
  EXPECT_GT(site.turns(), kParts / 5);
  EXPECT_GT(site.parts() - site.turns(), kParts / 5);
  EXPECT_GT(site.beside_others(), kParts / 50);

  site.drain();
  const State& state = site.state();
  EXPECT_EQ(check_invariants(state), std::vector<std::string>());
  EXPECT_TRUE(state.jobs.empty());
  EXPECT_TRUE(state.held_attempts.empty());
  EXPECT_TRUE(state.books->cluster.gpu_parts().empty());
  EXPECT_EQ(state.books->cluster.hash(), before) << "all that was free is free";
  state.nodes.for_each([](std::uint64_t, const model::Node& node) {
    EXPECT_EQ(node.cpus_used, 0U);
    EXPECT_EQ(node.memory_used, base::Bytes());
    for (const model::Gpu& gpu : node.gpus) {
      EXPECT_TRUE(gpu.holders.empty());
      EXPECT_EQ(gpu.state, model::GpuState::kAvailable);
    }
  });
}

}  // namespace
}  // namespace gpu_platform::controller
