#include <gtest/gtest.h>

#include "controller/preemption_site_fixture.h"
#include "controller/virtual_site_fixture.h"
#include "model/job_spec.h"
#include "views/planning_view.h"
#include "views/wait_explainer.h"

// The thing that a reason names keeps the job waiting: without it, in a copy of the world, the job
// starts or is told something else.

namespace gpu_platform::views {
namespace {

namespace testing = controller::testing;

using model::Shortage;
using model::WaitCode;
using model::WaitReason;

class ReasonSite : public testing::VirtualSite {
 public:
  explicit ReasonSite(std::uint64_t seed) : VirtualSite(seed, 3) {
    policy_.stop_grace = base::seconds(30);
    policy_.highest_user_priority = model::PriorityClass::kCritical;
    policy_.overdue_after = {};
    policy_.backfill_depth = static_cast<std::uint32_t>(1 + random().below(4));
    model::Organisation organisation;
    if (random().chance(1, 3)) {
      organisation.of_each_user.max_gpus = 8;
    } else if (random().chance(1, 4)) {
      organisation.of_each_user.gpu_types = {{.type = "H100", .max_gpus = {}, .gpu_hours = 60}};
    } else if (random().chance(1, 2)) {
      organisation.of_users = {{"cat", {.gpu_types = {{"H100", {}, 4}}}}};
    }
    policy_.organisation = std::move(organisation);
    begin(policy_);
  }

  void change_something() {
    switch (random().below(8)) {
      case 0:
        return change_gpus(model::GpuAction::kDrain);
      case 1:
        return change_gpus(model::GpuAction::kBringOnline);
      case 2:
        return reserve();
      default:
        return submit_one();
    }
  }

  const model::Policy& policy() const { return policy_; }

 private:
  void submit_one() {
    model::JobSpec spec = testing::spec(static_cast<std::uint32_t>(1 + random().below(8)));
    spec.request.cpus = static_cast<std::uint32_t>(1 + random().below(24));
    spec.request.memory = base::kGiB;
    spec.time_limit = base::minutes(static_cast<std::int64_t>(2 + random().below(300)));
    if (nodes() > 1 && random().chance(1, 5)) spec.request.nodes = 2;
    if (random().chance(1, 4)) spec.request.exclude = {model::NodeId(1 + random().below(nodes()))};
    const bool is_possible = spec.request.nodes + spec.request.exclude.size() <= nodes();
    const bool is_limited = !policy_.organisation->of_each_user.is_empty();
    if (is_possible && (!is_limited || spec.request.nodes == 1)) submit(spec);
  }
  void change_gpus(model::GpuAction action) {
    model::ChangeGpus change;
    change.which.node = "n" + std::to_string(random().below(nodes()));
    if (random().chance(1, 2))
      change.which.index = static_cast<std::uint32_t>(random().below(kGpusOfNode));
    change.action = action;
    command({model::root_caller(), std::move(change)});
  }
  void reserve() {
    model::MakeReservation made;
    made.name = "r" + std::to_string(++reservations_);
    made.users = {"cat"};
    made.ignore_running = true;
    made.nodes = {"n" + std::to_string(random().below(nodes()))};
    if (random().chance(1, 2))
      made.gpus_per_node = static_cast<std::uint32_t>(1 + random().below(4));
    made.begin = now() + base::minutes(static_cast<std::int64_t>(1 + random().below(200)));
    made.duration = base::minutes(static_cast<std::int64_t>(1 + random().below(200)));
    command({model::root_caller(), std::move(made)});
  }

  model::Policy policy_;
  std::uint64_t reservations_ = 0;
};

// A copy of the world after a cycle, and what its jobs are told.
class Copy {
 public:
  explicit Copy(const controller::State& state)
      : core_(*controller::decode_state(controller::encode_state(state))) {}

  void look(base::Instant now) {
    core_.advance(now);
    snapshot_ = core_.snapshot();
  }
  void command(const model::Command& command, base::Instant now) {
    EXPECT_TRUE(core_.command(command, now, store::Headroom::kAmple));
  }
  void apply(const model::Policy& policy, base::Instant now) {
    core_.apply_policy(policy, "test", now);
  }
  // Nothing where it does not wait in the queue.
  std::optional<WaitReason> reason(model::JobId id) const {
    const model::Job* job = snapshot_->jobs.find(id.value);
    if (job == nullptr || job->state != model::JobState::kQueued) return std::nullopt;
    return WaitExplainer(snapshot_).explain(*job);
  }
  const controller::Snapshot& snapshot() const { return *snapshot_; }

 private:
  controller::Core core_;
  std::shared_ptr<const controller::Snapshot> snapshot_;
};

// Takes away what the reason names; false where it names nothing of that kind.
bool remove_blocker(const WaitReason& reason, const ReasonSite& site, Copy& copy) {
  const base::Instant now = site.now();
  if (reason.code == WaitCode::kReserved) {
    copy.command({testing::kRoot, model::CancelReservation{reason.reservation}}, now);
  } else if (reason.code == WaitCode::kQuota) {
    model::Policy policy = site.policy();
    policy.organisation = model::Organisation();
    copy.apply(policy, now);
  } else if (reason.kept_for.valid()) {
    copy.command({testing::kRoot, model::ActOnJob{reason.kept_for, model::JobAction::kCancel}},
                 now);
  } else if (reason.code == WaitCode::kNoNode) {
    for (std::uint64_t node = 0; node < site.nodes(); ++node) {
      model::ChangeGpus online;
      online.which.node = "n" + std::to_string(node);
      online.action = model::GpuAction::kBringOnline;
      copy.command({testing::kRoot, online}, now);
      for (std::uint32_t gpu = 0; gpu < ReasonSite::kGpusOfNode; ++gpu) {
        online.which.index = gpu;
        copy.command({testing::kRoot, online}, now);
      }
    }
  } else {
    return false;
  }
  return true;
}

TEST(WaitReason, NamesWhatKeepsTheJobWaiting) {
  std::map<WaitCode, int> removed;
  int kept = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    ReasonSite site(seed);
    for (int i = 0; i < 40; ++i) {
      site.change_something();
      site.pass(base::seconds(static_cast<std::int64_t>(1 + site.random().below(900))), [] {});
      Copy before(site.state());
      before.look(site.now());
      before.snapshot().jobs.for_each([&](std::uint64_t, const model::Job& job) {
        const auto told = before.reason(job.id);
        if (!told) return;
        Copy after(site.state());
        if (!remove_blocker(*told, site, after)) return;
        after.look(site.now());
        ++removed[told->code];
        kept += told->kept_for.valid() ? 1 : 0;
        const auto then = after.reason(job.id);
        const auto named = [](const WaitReason& reason) {
          return std::tuple(reason.code, reason.reservation, reason.kept_for);
        };
        EXPECT_TRUE(!then || named(*then) != named(*told))
            << "seed " << seed << " step " << i << " job " << job.id.value << ": "
            << describe(*told);
      });
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(removed[WaitCode::kReserved], 50);
  EXPECT_GT(removed[WaitCode::kQuota], 50);
  EXPECT_GT(removed[WaitCode::kNoNode], 50);
  EXPECT_GT(kept, 50);
}

// The daemon explains single jobs by books that follow, and lists by those of their snapshot.
void expect_same_by_view(PlanningView& view, std::shared_ptr<const controller::Snapshot> snapshot,
                         std::map<WaitCode, int>& told) {
  view.follow(snapshot);
  WaitExplainer by_view(view);
  WaitExplainer by_snapshot(snapshot);
  snapshot->jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (!model::is_waiting(job.state) && job.state != model::JobState::kHeld) return;
    const WaitReason reason = by_snapshot.explain(job);
    EXPECT_EQ(by_view.explain(job), reason) << describe(reason);
    ++told[reason.code];
  });
}

template <class Site, class Change>
std::map<WaitCode, int> compare_with_view(const Change& change) {
  std::map<WaitCode, int> told;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Site site(seed);
    PlanningView view;
    for (int i = 0; i < 40; ++i) {
      change(site);
      site.pass(base::seconds(static_cast<std::int64_t>(1 + site.random().below(900))), [] {});
      expect_same_by_view(view, site.snapshot(), told);
      if (::testing::Test::HasFailure()) return told;
    }
  }
  return told;
}

TEST(WaitReason, IsTheSameByBooksThatFollow) {
  auto told = compare_with_view<ReasonSite>([](ReasonSite& site) { site.change_something(); });
  EXPECT_GT(told[WaitCode::kReserved], 50);
  EXPECT_GT(told[WaitCode::kQuota], 50);
  EXPECT_GT(told[WaitCode::kPriority], 50);
  told = compare_with_view<testing::PreemptionSite>(
      [](testing::PreemptionSite& site) { site.submit_some(); });
  EXPECT_GT(told[WaitCode::kPreempting], 5);
  EXPECT_GT(told[WaitCode::kQuota], 50);
}

}  // namespace
}  // namespace gpu_platform::views
