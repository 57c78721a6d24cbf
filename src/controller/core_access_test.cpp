#include <gtest/gtest.h>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"
#include "model/access.h"
#include "model/job_spec.h"

// What the core does for callers by their role and by the reach of their call, which the door gives
// them.

namespace gpu_platform::controller {
namespace {

using model::Hold;
using model::JobAction;
using testing::kNoon;
using testing::kOtherUser;
using testing::kOwner;

// For a call whose row says that operators may do it for all.
model::Caller operator_of_all() {
  return {"otto", 1003, model::Role::kOperator, model::Reach::kAll};
}
model::Caller coordinator_of(std::string team) {
  model::Caller cora{"cora", 1004, model::Role::kUser, model::Reach::kTeams};
  cora.teams = std::make_shared<const model::Teams>(model::Teams{{}, {std::move(team)}});
  return cora;
}

class CoreAccess : public ::testing::Test {
 protected:
  CoreAccess() {
    model::Policy policy;
    policy.highest_user_priority = model::PriorityClass::kMedium;
    core_.apply_policy(policy, "test", kNoon);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 8)}, kNoon);
    model::JobSpec spec = testing::spec(1);
    spec.team = "vision";
    job_ = tell(kOwner, model::SubmitJob{spec, {}})->job;
    core_.take_batch();
  }

  base::Result<model::CommandReply> tell(const model::Caller& by, auto body) {
    auto reply =
        core_.command({by, decltype(body)(std::move(body))}, kNoon, store::Headroom::kAmple);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
    return reply;
  }
  base::Result<model::CommandReply> act(const model::Caller& by, JobAction action) {
    return tell(by, model::ActOnJob{job_, action});
  }
  base::ErrorCode refusal(const model::Caller& by, auto body) {
    const auto reply = tell(by, std::move(body));
    return reply ? base::ErrorCode::kInternal : reply.error().code;
  }
  model::UpdateJob priority(model::PriorityClass to) const {
    model::UpdateJob update;
    update.job = job_;
    update.to.set(&model::JobSpec::priority, model::Priority{to, 1});
    return update;
  }
  Hold hold() const { return core_.state().jobs.find(job_.value)->hold; }

  Core core_;
  model::JobId job_;
};

TEST_F(CoreAccess, AnotherUserTouchesNoJobWhateverItsRole) {
  model::Caller otto = operator_of_all();
  otto.reach = model::Reach::kOwn;
  for (const model::Caller& by : {kOtherUser, otto, coordinator_of("sound")}) {
    const auto reply = act(by, JobAction::kHold);
    ASSERT_FALSE(reply) << by.user;
    EXPECT_EQ(reply.error().code, base::ErrorCode::kPermissionDenied);
    EXPECT_EQ(reply.error().message, "job 1 belongs to another user");
  }
}

TEST_F(CoreAccess, OperatorsHoldReleaseAndStopTheJobsOfAll) {
  ASSERT_TRUE(act(operator_of_all(), JobAction::kHold));
  EXPECT_EQ(hold(), Hold::kByAdministrator);
  EXPECT_FALSE(act(kOwner, JobAction::kRelease)) << "an owner does not lift an operator's hold";
  ASSERT_TRUE(act(operator_of_all(), JobAction::kRelease));
  EXPECT_EQ(hold(), Hold::kNone);
  EXPECT_TRUE(act(operator_of_all(), JobAction::kCancel));
}

TEST_F(CoreAccess, CoordinatorsDoSoForJobsOfTheirTeam) {
  ASSERT_TRUE(act(coordinator_of("vision"), JobAction::kHold));
  EXPECT_EQ(hold(), Hold::kByAdministrator);
  EXPECT_FALSE(act(kOwner, JobAction::kRelease));
  EXPECT_FALSE(act(coordinator_of("sound"), JobAction::kRelease));
  ASSERT_TRUE(act(coordinator_of("vision"), JobAction::kRelease));
  EXPECT_EQ(hold(), Hold::kNone);
}

TEST_F(CoreAccess, OperatorsPassTheSitesHighestPriorityAndCoordinatorsDoNot) {
  using model::PriorityClass;
  EXPECT_EQ(refusal(kOwner, priority(PriorityClass::kHigh)), base::ErrorCode::kPermissionDenied);
  EXPECT_EQ(refusal(coordinator_of("vision"), priority(PriorityClass::kHigh)),
            base::ErrorCode::kPermissionDenied);
  EXPECT_TRUE(tell(coordinator_of("vision"), priority(PriorityClass::kLow)));
  EXPECT_TRUE(tell(operator_of_all(), priority(PriorityClass::kHigh)));
}

TEST_F(CoreAccess, ManyJobsAreThoseThatTheCallMayTouch) {
  model::JobSpec other = testing::spec(1);
  other.user = "bob";
  other.uid = 1002;
  other.team = "sound";
  ASSERT_TRUE(tell(kOtherUser, model::SubmitJob{other, {}}));
  model::ActOnJobs all;
  all.action = JobAction::kHold;
  all.dry_run = true;
  EXPECT_EQ(tell(coordinator_of("vision"), all)->jobs.size(), 1U);
  EXPECT_EQ(tell(operator_of_all(), all)->jobs.size(), 2U);
  all.which.user = "ann";
  EXPECT_EQ(refusal(kOtherUser, all), base::ErrorCode::kPermissionDenied);
  EXPECT_EQ(tell(coordinator_of("vision"), all)->jobs.size(), 1U);
}

TEST_F(CoreAccess, GpusAndReservationsAreForCallsThatReachAll) {
  const model::ChangeGpus drain{{.node = "n1"}, model::GpuAction::kDrain, "", false};
  const model::CancelReservation cancel{"course"};
  for (const model::Caller& by : {kOwner, coordinator_of("vision")}) {
    EXPECT_EQ(refusal(by, drain), base::ErrorCode::kPermissionDenied) << by.user;
    EXPECT_EQ(refusal(by, cancel), base::ErrorCode::kPermissionDenied) << by.user;
  }
  EXPECT_TRUE(tell(operator_of_all(), drain));
  EXPECT_EQ(refusal(operator_of_all(), cancel), base::ErrorCode::kNotFound);
}

TEST_F(CoreAccess, NobodySubmitsForRootButRoot) {
  model::JobSpec spec = testing::spec(1);
  const model::Caller eve{"eve", 1005, model::Role::kAdmin, model::Reach::kAll};
  EXPECT_TRUE(tell(eve, model::SubmitJob{spec, {}}));
  model::Caller otto = operator_of_all();
  otto.reach = model::Reach::kOwn;
  EXPECT_EQ(refusal(otto, model::SubmitJob{spec, {}}), base::ErrorCode::kPermissionDenied);
  spec.user = "root";
  spec.uid = 0;
  EXPECT_EQ(refusal(eve, model::SubmitJob{spec, {}}), base::ErrorCode::kPermissionDenied);
  EXPECT_TRUE(tell(testing::kRoot, model::SubmitJob{spec, {}}));
}

}  // namespace
}  // namespace gpu_platform::controller
