#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "controller/core.h"
#include "controller/preemption_site_fixture.h"
#include "controller/test_support.h"
#include "model/job_spec.h"
#include "views/explanation.h"
#include "views/planning_view.h"
#include "views/wait_explainer.h"

// What is told of preemptions before and while they happen.

namespace gpu_platform::views {
namespace {

namespace testing = controller::testing;

using base::minutes;
using testing::attempt;
using testing::kNoon;

class PreemptionViewTest : public ::testing::Test {
 protected:
  PreemptionViewTest() {
    policy_.preempt_min_runtime = minutes(10);
    core_.apply_policy(policy_, "test", kNoon);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 2)}, kNoon);
  }

  void submit(std::uint32_t gpus, std::uint8_t priority) {
    model::JobSpec spec = testing::spec(gpus);
    spec.priority = model::priority_of_number(priority);
    EXPECT_TRUE(core_.command(testing::submission(std::move(spec)), now_, store::Headroom::kAmple));
    advance();
  }
  void run_first() {
    core_.observe(execution::Started{attempt(1), 5, now_}, now_);
    advance();
  }
  void advance(base::Duration by = {}) {
    now_ = now_ + by;
    core_.advance(now_);
  }
  const model::PreemptionHold* hold_of(std::uint64_t id) const {
    return core_.state().books->holds.find(model::JobId(id));
  }
  Explanation of_new(std::uint32_t gpus, std::uint8_t priority) {
    model::JobSpec spec = testing::spec(gpus);
    spec.time_limit = base::hours(1);
    spec.priority = model::priority_of_number(priority);
    spec.request.reserve_percent = policy_.cpu_job_reserve_percent;  // as a submission gets it
    PlanningView view(core_.snapshot());
    return explain_new(view, std::make_shared<const model::JobSpec>(spec), now_, Effort::kThorough);
  }

  model::Policy policy_;
  controller::Core core_;
  base::Instant now_ = kNoon;
};

TEST_F(PreemptionViewTest, AnExplanationNamesTheJobsThatWouldBeStopped) {
  submit(2, 8);
  run_first();
  EXPECT_FALSE(of_new(1, 3).preemption.has_value());  // not for long enough
  advance(minutes(11));
  EXPECT_FALSE(of_new(1, 8).preemption.has_value());  // of the same class
  const Explanation found = of_new(1, 3);
  ASSERT_TRUE(found.preemption.has_value());
  EXPECT_EQ(found.preemption->victims, std::vector{attempt(1)});
  ASSERT_TRUE(found.planned.has_value());
  EXPECT_EQ(found.planned->start, now_ + policy_.stop_grace);
  submit(1, 3);
  ASSERT_NE(hold_of(2), nullptr);
  EXPECT_EQ(hold_of(2)->victims, found.preemption->victims);
  EXPECT_EQ(hold_of(2)->allocation, found.preemption->held);
  EXPECT_FALSE(of_new(1, 3).preemption.has_value());  // no victim is left to be stopped
}

TEST_F(PreemptionViewTest, TheBeneficiaryIsToldWhomItWaitsFor) {
  submit(2, 8);
  run_first();
  advance(minutes(11));
  submit(1, 3);
  const auto snapshot = core_.snapshot();
  const model::WaitReason reason = WaitExplainer(snapshot).explain(*snapshot->jobs.find(2));
  EXPECT_EQ(reason.code, model::WaitCode::kPreempting);
  EXPECT_EQ(model::describe(reason), "1 job is being stopped for it: 1");
}

// After a cycle no job in the queue is told that it would start in it. Jobs with an expected time
// are left out: of those that a prediction may let in, the cycle tries only the first of equal
// ones.
TEST(Explanation, AgreesWithTheCycleWhateverIsGuaranteed) {
  std::uint64_t asked = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    testing::PreemptionSite site(seed);
    PlanningView view;
    for (int i = 0; i < 40; ++i) {
      site.submit_some();
      site.pass(base::seconds(static_cast<std::int64_t>(1 + site.random().below(1800))), [] {});
      view.follow(site.snapshot());
      site.state().jobs.for_each([&](std::uint64_t, const model::Job& job) {
        if (job.state != model::JobState::kQueued || job.spec->expected_time) return;
        ++asked;
        EXPECT_FALSE(explain_waiting(view, job.id, site.now(), Effort::kQuick).starts_now)
            << "seed " << seed << " step " << i << " job " << job.id.value;
      });
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(asked, 1000U);
}

}  // namespace
}  // namespace gpu_platform::views
