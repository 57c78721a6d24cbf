#include "views/planned_starts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/core.h"
#include "controller/test_support.h"
#include "model/job_spec.h"

namespace gpu_platform::views {
namespace {

namespace testing = controller::testing;

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kNoon;
using ::testing::Pair;

// One node of two GPUs; job 1 runs on both for an hour, the next three want both for as long.
class PlannedStartsTest : public ::testing::Test {
 protected:
  PlannedStartsTest() { policy_.stop_grace = {}; }

  void fill() {
    core_.apply_policy(policy_, "test", kNoon);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 2)}, kNoon);
    for (int i = 0; i < 4; ++i) {
      model::JobSpec spec = testing::spec(2);
      spec.time_limit = base::hours(1);
      ASSERT_TRUE(core_.command(testing::submission(spec), kNoon, store::Headroom::kAmple));
      core_.advance(kNoon);
    }
  }
  controller::Snapshot snapshot() { return *core_.snapshot(); }
  PlannedStarts all_starts() {
    PlanningView view(core_.snapshot());
    return plan_all_starts(view);
  }
  static base::Instant after(int hours) { return kNoon + base::hours(hours); }

  model::Policy policy_;
  controller::Core core_;
};

TEST_F(PlannedStartsTest, FirstInTheQueueAreKnownFromTheLastCycle) {
  policy_.backfill_depth = 2;
  fill();
  EXPECT_THAT(last_planned_starts(snapshot()),
              ElementsAre(Pair(model::JobId(2), after(1)), Pair(model::JobId(3), after(2))));
}

TEST_F(PlannedStartsTest, AllAreWorkedOutWhereAskedFor) {
  policy_.backfill_depth = 1;
  fill();
  EXPECT_THAT(all_starts(),
              ElementsAre(Pair(model::JobId(2), after(1)), Pair(model::JobId(3), after(2)),
                          Pair(model::JobId(4), after(3))));
}

TEST_F(PlannedStartsTest, WithoutPlannedStartsNothingIsKnown) {
  policy_.backfill_depth = 0;
  fill();
  EXPECT_THAT(last_planned_starts(snapshot()), IsEmpty());
  EXPECT_THAT(all_starts(), IsEmpty());
}

TEST_F(PlannedStartsTest, ALongerLimitOfWhoRunsMovesThem) {
  fill();
  const model::Caller root = model::root_caller();
  ASSERT_TRUE(core_.command(
      model::Command{root, model::UpdateJob{.job = model::JobId(1),
                                            .to = model::SpecPatch().set(
                                                &model::JobSpec::time_limit, base::hours(5))}},
      kNoon, store::Headroom::kAmple));
  core_.advance(kNoon);
  EXPECT_EQ(last_planned_starts(snapshot()).at(model::JobId(2)), after(5));
}

}  // namespace
}  // namespace gpu_platform::views
