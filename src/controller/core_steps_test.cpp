// What a job's processes report of its steps.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {
namespace {

using base::ErrorCode;
using base::seconds;
using model::JobStep;
using testing::attempt;
using testing::kAdministrator;
using testing::kNoon;
using testing::kOtherUser;
using testing::kOwner;

class StepsTest : public ::testing::Test {
 protected:
  StepsTest() {
    core_.apply_policy(model::Policy(), "test", now_);
    see(execution::NodeObserved{testing::node_info("n1", 8)});
    model::JobSpec spec = testing::spec(2);
    spec.user = kOwner.user;
    spec.uid = spec.gid = kOwner.uid;
    const auto reply = core_.command(testing::submission(spec), now_, store::Headroom::kAmple);
    EXPECT_TRUE(reply);
    id_ = reply->job.value;
    core_.advance(now_);
  }

  void see(execution::Observation observation) {
    core_.observe(observation, now_);
    core_.advance(now_);
  }
  void start() { see(execution::Started{attempt(id_), 5, now_}); }
  void end() {
    execution::Ended ended;
    ended.attempt = attempt(id_);
    ended.at = now_;
    ended.exit.code = 0;
    see(ended);
  }
  JobStep running(std::uint32_t number) const {
    JobStep step;
    step.number = number;
    step.name = "python";
    step.tasks = 2;
    step.cpus = step.gpus = 2;
    step.started_at = now_;
    return step;
  }
  JobStep ended(std::uint32_t number) const {
    JobStep step = running(number);
    step.ended_at = now_;
    step.exit.code = 3;
    step.use.user_time = seconds(4);
    step.use.least_time = seconds(1);
    step.use.least_task = 1;
    step.use.peak_memory = base::kMiB;
    step.use.all_memory = base::kMiB;
    return step;
  }
  base::Result<model::CommandReply> record(JobStep step, const model::Caller& caller = kOwner,
                                           store::Headroom headroom = store::Headroom::kAmple) {
    auto reply =
        core_.command({caller, model::RecordStep{attempt(id_), std::move(step)}}, now_, headroom);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
    return reply;
  }
  const model::JobSteps& steps() const {
    return *core_.state().jobs.find(id_)->attempts.back().steps;
  }

  base::Instant now_ = kNoon;
  Core core_;
  std::uint64_t id_ = 0;
};

TEST_F(StepsTest, AStepIsRecordedWhenItBeginsAndEnds) {
  start();
  ASSERT_TRUE(record(running(0)));
  EXPECT_FALSE(steps().at(0)->ended_at.is_set());
  now_ = now_ + seconds(5);
  const JobStep end = ended(0);
  ASSERT_TRUE(record(end)->changed);
  ASSERT_EQ(steps().size(), 1U);
  EXPECT_EQ(*steps()[0], end);
}

// The first step may come before the engine's word that the job runs.
TEST_F(StepsTest, AJobThatIsBeingStartedHasSteps) {
  ASSERT_TRUE(record(ended(0)));
  EXPECT_EQ(steps().size(), 1U);
}

TEST_F(StepsTest, AReportThatComesAgainOrLateChangesNothing) {
  start();
  ASSERT_TRUE(record(running(4))->changed);
  EXPECT_FALSE(record(running(4))->changed);
  ASSERT_TRUE(record(ended(4))->changed);
  EXPECT_FALSE(record(ended(4))->changed);
  EXPECT_FALSE(record(running(4))->changed);
  EXPECT_EQ(steps().at(0)->exit.code, 3);
  JobStep other = ended(4);
  other.exit.code = 0;
  const auto refused = record(other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "number");
}

TEST_F(StepsTest, StepsEndWithTheirAttempt) {
  start();
  ASSERT_TRUE(record(running(0)));
  ASSERT_TRUE(record(ended(1)));
  now_ = now_ + seconds(60);
  end();
  EXPECT_EQ(steps().at(0)->ended_at, now_);
  EXPECT_EQ(steps()[0]->exit.lost, model::Lost::kUnknown);
  EXPECT_EQ(steps()[1]->exit.code, 3);
  EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  const auto late = record(ended(0));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(StepsTest, StepsOfAnotherAttemptAreRefused) {
  start();
  const auto refused = core_.command({kOwner, model::RecordStep{attempt(id_, 2), running(0)}}, now_,
                                     store::Headroom::kAmple);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "attempt");
}

TEST_F(StepsTest, OnlyTheOwnerAndAdministratorsRecordSteps) {
  start();
  const auto refused = record(running(0), kOtherUser);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kPermissionDenied);
  EXPECT_TRUE(record(running(0), kAdministrator));
}

TEST_F(StepsTest, NoStepIsRecordedOnAFullDisk) {
  start();
  const auto refused = record(running(0), kOwner, store::Headroom::kReserved);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
}

// A step is the job's own record: it is in no entry of the audit trail, and decides nothing.
TEST_F(StepsTest, AStepIsOneEventAndNoEffect) {
  start();
  core_.take_batch();
  ASSERT_TRUE(record(ended(0)));
  const Batch batch = core_.take_batch();
  ASSERT_EQ(batch.events.size(), 1U);
  EXPECT_EQ(name_of(batch.events[0].event), "StepRecorded");
  EXPECT_TRUE(batch.effects.empty());
}

TEST_F(StepsTest, AValueOutOfRangeIsRefusedByItsName) {
  start();
  struct Case {
    std::string field;
    std::function<void(JobStep&)> spoil;
  };
  const base::Duration hour = base::hours(1);
  const base::Instant before(now_.unix_ns() - hour.value());
  const Case cases[] = {
      {"name", [](JobStep& s) { s.name = "a\nb"; }},
      {"name", [](JobStep& s) { s.name = std::string(65, 'a'); }},
      {"tasks", [](JobStep& s) { s.tasks = 0; }},
      {"tasks", [](JobStep& s) { s.tasks = 1'000'001; }},
      {"cpus", [](JobStep& s) { s.cpus = 1'000; }},
      {"gpus", [](JobStep& s) { s.gpus = 3; }},
      {"memory_bytes", [](JobStep& s) { s.memory = base::Bytes(INT64_MAX); }},
      {"memory_bytes", [](JobStep& s) { s.memory = base::Bytes(-1); }},
      {"nodes", [](JobStep& s) { s.nodes = {1}; }},
      {"nodes", [](JobStep& s) { s.nodes = {0, 0}; }},
      {"started_at", [](JobStep& s) { s.started_at = {}; }},
      {"started_at", [&](JobStep& s) { s.started_at = before; }},
      {"started_at", [&](JobStep& s) { s.started_at = now_ + hour; }},
      {"ended_at", [&](JobStep& s) { s.ended_at = before; }},
      {"ended_at", [&](JobStep& s) { s.ended_at = now_ + hour; }},
      {"ended_at", [](JobStep& s) { s.ended_at = {}; }},
      {"exit_code", [](JobStep& s) { s.exit.code.reset(); }},
      {"exit_code", [](JobStep& s) { s.exit.signal = 9; }},
      {"lost", [](JobStep& s) { s.exit = {{}, {}, model::Lost::kUnknown}; }},
      {"user_cpu_seconds", [](JobStep& s) { s.use.user_time = seconds(-1); }},
      {"system_cpu_seconds", [](JobStep& s) { s.use.system_time = seconds(-1); }},
      {"least_cpu_seconds", [](JobStep& s) { s.use.least_time = seconds(5); }},
      {"peak_memory_bytes", [](JobStep& s) { s.use.peak_memory = base::kGiB; }},
      {"peak_memory_task", [](JobStep& s) { s.use.peak_task = 2; }},
      {"least_cpu_task", [](JobStep& s) { s.use.least_task = 2; }},
  };
  for (const Case& each : cases) {
    JobStep step = ended(0);
    each.spoil(step);
    const auto refused = record(step);
    ASSERT_FALSE(refused) << each.field;
    EXPECT_EQ(refused.error().field, each.field) << refused.error().message;
  }
  EXPECT_TRUE(steps().empty());
}

TEST_F(StepsTest, AJobHasABoundedNumberOfSteps) {
  start();
  for (std::uint32_t number = 0; number < model::kMaxSteps; ++number) {
    ASSERT_TRUE(core_.command({kOwner, model::RecordStep{attempt(id_), running(number)}}, now_,
                              store::Headroom::kAmple));
    core_.take_batch();
  }
  const auto refused = record(running(model::kMaxSteps));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(refused.error().field, "number");
  EXPECT_TRUE(record(ended(17))->changed) << "those that are there still end";
}

TEST_F(StepsTest, StepsSurviveARestart) {
  start();
  ASSERT_TRUE(record(running(0)));
  ASSERT_TRUE(record(ended(1)));
  const auto restored = decode_state(encode_state(core_.state()));
  ASSERT_TRUE(restored);
  EXPECT_EQ(*restored->jobs.find(id_)->attempts.back().steps, steps());
}

}  // namespace
}  // namespace gpu_platform::controller
