#include <algorithm>

#include <gtest/gtest.h>

#include "controller/invariants.h"
#include "controller/test_support.h"
#include "model/job_spec.h"

// These tests check what the audit trail says about commands.

namespace gpu_platform::controller {
namespace {

using model::AuditAction;
using testing::kNoon;

constexpr model::JobAction kAllActions[] = {
    model::JobAction::kCancel,  model::JobAction::kKill,    model::JobAction::kHold,
    model::JobAction::kRelease, model::JobAction::kRequeue, model::JobAction::kRequeueAndHold};

class CoreAudit : public ::testing::Test {
 protected:
  CoreAudit() {
    core_.apply_policy(model::Policy(), "test", kNoon);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 8)}, kNoon);
    core_.take_batch();
  }

  static model::Caller caller(std::string user, std::uint32_t uid) {
    model::Caller caller = model::caller_with_uid(std::move(user), uid);
    caller.door = model::Door::kUnixSocket;
    caller.pid = 4242;
    return caller;
  }
  model::Caller ann() const { return caller("ann", 1001); }
  model::Caller root() const { return caller("root", 0); }

  base::Result<model::CommandReply> tell(model::Caller by, auto body,
                                         store::Headroom headroom = store::Headroom::kAmple) {
    return core_.command({std::move(by), std::move(body)}, kNoon, headroom);
  }
  model::JobId submit(model::Caller by, model::JobSpec spec) {
    const auto reply = tell(std::move(by), model::SubmitJob{std::move(spec), "TOKEN=secret"});
    EXPECT_TRUE(reply) << reply.error().message;
    return reply ? reply->job : model::JobId();
  }
  static model::JobSpec spec_of(std::string user, std::uint32_t uid, std::uint32_t gpus = 1) {
    model::JobSpec spec = testing::spec(gpus);
    spec.user = std::move(user);
    spec.uid = uid;
    return spec;
  }
  void start_all() {
    core_.advance(kNoon);
    for (const auto& known : known_attempts(core_.state())) {
      execution::Started started;
      started.attempt = known.order.attempt;
      started.pid = 1;
      started.at = kNoon;
      core_.observe(started, kNoon);
    }
    core_.take_batch();
  }

  // Returns what the open batch adds to the trail.
  std::vector<model::AuditedCall> audited() {
    std::vector<model::AuditedCall> calls;
    const Batch batch = core_.take_batch();
    for (const auto& record : batch.events) {
      if (auto entry = model::audit_entry(record)) calls.push_back(std::move(entry->call));
    }
    return calls;
  }

  Core core_;
};

TEST_F(CoreAudit, ASubmissionIsOneEvent) {
  submit(ann(), spec_of("ann", 1001));
  const Batch batch = core_.take_batch();
  ASSERT_EQ(batch.events.size(), 1u);
  const auto entry = model::audit_entry(batch.events.front());
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->call.by, (model::Origin{model::Door::kUnixSocket, "ann", 1001, 4242}));
}

TEST_F(CoreAudit, ARepeatOrATrialOfASubmissionIsNone) {
  model::JobSpec spec = spec_of("ann", 1001);
  spec.request_id = "once";
  submit(ann(), spec);
  EXPECT_EQ(audited().size(), 1u);
  submit(ann(), spec);
  model::SubmitJob trial{spec, {}};
  trial.dry_run = true;
  ASSERT_TRUE(tell(ann(), trial));
  EXPECT_TRUE(audited().empty());
}

TEST_F(CoreAudit, EachChangeOfAJobAppearsOnceAndOneThatChangesNothingNever) {
  for (const model::JobAction action : kAllActions) {
    const model::JobId job = submit(ann(), spec_of("ann", 1001));
    const bool needs_run = action >= model::JobAction::kRequeue;
    if (needs_run) start_all();
    if (action == model::JobAction::kRelease) {
      ASSERT_TRUE(tell(root(), model::ActOnJob{job, model::JobAction::kHold}));
    }
    audited();
    ASSERT_TRUE(tell(root(), model::ActOnJob{job, action}));
    const auto calls = audited();
    ASSERT_EQ(calls.size(), 1u) << static_cast<int>(action);
    EXPECT_EQ(calls[0].action, model::audit_action(action));
    EXPECT_EQ(calls[0].by.user, "root");
    EXPECT_EQ(calls[0].owner, (model::JobOwner{"ann", 1001}));
    EXPECT_EQ(calls[0].jobs, std::vector{job});
    EXPECT_EQ(calls[0].job_count, 1u);
    EXPECT_FALSE(calls[0].refusal);
    (void)tell(root(), model::ActOnJob{job, action});
    EXPECT_TRUE(audited().empty()) << "nothing changed: " << static_cast<int>(action);
    (void)tell(root(), model::ActOnJob{job, model::JobAction::kKill});
    audited();
  }
}

TEST_F(CoreAudit, AnUpdateSaysThatItWasOneAndAnUpdateOfNothingIsNone) {
  const model::JobId job = submit(ann(), spec_of("ann", 1001));
  audited();
  model::UpdateJob update;
  update.job = job;
  update.to.set(&model::JobSpec::name, "other");
  ASSERT_TRUE(tell(ann(), update));
  const auto calls = audited();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].action, AuditAction::kUpdate);
  ASSERT_TRUE(tell(ann(), update));
  EXPECT_TRUE(audited().empty());
}

TEST_F(CoreAudit, OneCallOnJobsOfSeveralIsAnEntryForEachOwnerWithNoneOfTheOthersJobs) {
  std::vector<model::JobId> of_ann;
  for (std::size_t i = 0; i < model::kMaxAuditedJobs + 20; ++i) {
    of_ann.push_back(submit(ann(), spec_of("ann", 1001, 8)));
  }
  const model::JobId of_bob = submit(caller("bob", 1002), spec_of("bob", 1002, 8));
  audited();
  model::ActOnJobs all;
  all.action = model::JobAction::kCancel;
  all.dry_run = true;
  ASSERT_TRUE(tell(root(), all));
  EXPECT_TRUE(audited().empty()) << "a trial changes nothing";
  all.dry_run = false;
  ASSERT_TRUE(tell(root(), all));
  const auto calls = audited();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].owner->user, "ann");
  EXPECT_EQ(calls[0].job_count, of_ann.size());
  of_ann.resize(model::kMaxAuditedJobs);
  EXPECT_EQ(calls[0].jobs, of_ann);
  EXPECT_EQ(calls[1].owner->user, "bob");
  EXPECT_EQ(calls[1].jobs, std::vector{of_bob});
}

TEST_F(CoreAudit, AGpuTakenAwayByForceIsSaidOfItAndToThoseWhomItStops) {
  const model::JobId job = submit(ann(), spec_of("ann", 1001));
  start_all();
  model::ChangeGpus change;
  change.which = {.node = "n1", .index = 0};
  change.action = model::GpuAction::kTakeOffline;
  EXPECT_FALSE(tell(root(), change)) << "refused while a job holds it";
  EXPECT_TRUE(audited().empty());
  change.force = true;
  ASSERT_TRUE(tell(root(), change));
  const auto calls = audited();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].action, AuditAction::kTakeOffline);
  EXPECT_EQ(calls[0].gpus, std::vector<std::string>{"n1:0"});
  EXPECT_EQ(calls[0].target, "n1");
  EXPECT_FALSE(calls[0].owner);
  EXPECT_EQ(calls[1].owner->user, "ann");
  EXPECT_EQ(calls[1].jobs, std::vector{job});
}

TEST_F(CoreAudit, ReservationsAreSaidByName) {
  model::MakeReservation made;
  made.name = "course";
  made.duration = base::hours(1);
  made.users = {"ann"};
  made.gpus = 2;
  ASSERT_TRUE(tell(root(), made));
  auto calls = audited();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].action, AuditAction::kMakeReservation);
  EXPECT_EQ(calls[0].target, "course");
  model::JobSpec inside = spec_of("ann", 1001, 4);
  model::ChangeReservation change;
  change.name = "course";
  change.duration = base::minutes(30);
  ASSERT_TRUE(tell(root(), change));
  calls = audited();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].action, AuditAction::kChangeReservation);
  EXPECT_EQ(calls[0].target, "course");
  ASSERT_TRUE(tell(root(), model::CancelReservation{"course"}));
  calls = audited();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].action, AuditAction::kCancelReservation);
}

TEST_F(CoreAudit, AReloadIsAlwaysSaidAStartOnlyWhereItChangesSomething) {
  const model::Origin start{model::Door::kStart, "gp", 990, 1};
  const model::Origin signal{model::Door::kSignal, "root", 0, 7};
  core_.apply_policy(model::Policy(), "configuration", kNoon, start);
  EXPECT_TRUE(audited().empty());
  core_.apply_policy(model::Policy(), "configuration", kNoon, signal);
  auto calls = audited();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].by, signal);
  model::Policy other;
  other.max_queue_size = 5;
  core_.apply_policy(other, "configuration", kNoon, start);
  calls = audited();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].by, start);
  EXPECT_EQ(calls[0].action, AuditAction::kConfigure);
}

TEST_F(CoreAudit, RefusedCallsUseNothingOfAFullDisksReserve) {
  model::AuditedCall refused;
  refused.refusal = {"NOT_FOUND", "no"};
  model::AuditedCall entered;
  entered.action = AuditAction::kExec;
  const model::RecordCalls both{{refused, entered}};
  ASSERT_TRUE(tell({}, both, store::Headroom::kReserved));
  auto calls = audited();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].action, AuditAction::kExec);
  ASSERT_TRUE(tell({}, both));
  EXPECT_EQ(audited().size(), 2u);
}

TEST_F(CoreAudit, WhoComesThroughNoDoorLeavesNoTrace) {
  const model::JobId job = submit({"ann", 1001}, spec_of("ann", 1001));
  ASSERT_TRUE(tell({"ann", 1001}, model::ActOnJob{job, model::JobAction::kHold}));
  EXPECT_TRUE(audited().empty());
}

}  // namespace
}  // namespace gpu_platform::controller
