#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"
#include "model/job_size.h"
#include "model/job_spec.h"

// These tests check how much of the memory for jobs one user may take. Places in the queue are in
// tests/scenarios.

namespace gpu_platform::controller {
namespace {

using base::ErrorCode;
using testing::kNoon;

class Admission : public ::testing::Test {
 protected:
  Admission() {
    policy_.max_specification_bytes_per_user = base::Bytes(100'000);
    policy_.max_specification_bytes = base::Bytes(200'000);
    policy_.percent_for_root = 10;
    policy_.own_uid = 900;
    core_.apply_policy(policy_, "test", kNoon);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 1)}, kNoon);
  }

  static model::JobSpec large(std::string user, std::uint32_t uid, std::size_t bytes = 40'000) {
    model::JobSpec spec = testing::spec(0);
    spec.user = std::move(user);
    spec.uid = uid;
    spec.command = {"/bin/true", std::string(bytes, 'x')};
    return spec;
  }
  base::Result<model::CommandReply> submit(model::JobSpec spec) {
    model::Command command = testing::submission(std::move(spec));
    std::get<model::SubmitJob>(command.body).hold = true;
    if (command.caller.uid == 0) command.caller = model::root_caller();
    auto reply = core_.command(command, kNoon, store::Headroom::kAmple);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
    return reply;
  }
  base::Result<model::CommandReply> act(std::uint64_t job, model::JobAction action,
                                        std::uint32_t uid) {
    auto reply = core_.command({{"ann", uid}, model::ActOnJob{model::JobId(job), action}}, kNoon,
                               store::Headroom::kAmple);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
    return reply;
  }
  base::Bytes of(std::uint32_t uid) const { return core_.state().load.of(uid).specifications; }

  model::Policy policy_;
  Core core_;
};

TEST_F(Admission, SpecificationsOfOneUserHaveALimitThatTheRefusalNames) {
  ASSERT_TRUE(submit(large("ann", 1001)));
  ASSERT_TRUE(submit(large("ann", 1001)));
  const auto refused = submit(large("ann", 1001));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(refused.error().field, "command");
  for (const char* word : {"user ann", "100KB", "scheduling.max_specification_bytes_per_user",
                           "submit again when earlier jobs have ended"}) {
    EXPECT_NE(refused.error().message.find(word), std::string::npos) << refused.error().message;
  }
  EXPECT_TRUE(submit(large("bob", 1002))) << "it is the limit of one user";
}

TEST_F(Admission, WhatAllTakeHasALimitOfWhichAPartIsKeptForRoot) {
  for (const std::uint32_t uid : {1001U, 1002U}) {
    ASSERT_TRUE(submit(large("u" + std::to_string(uid), uid, 80'000)));
  }
  const auto refused = submit(large("cid", 1003, 30'000));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("scheduling.max_specification_bytes:"), std::string::npos)
      << refused.error().message;
  EXPECT_NE(refused.error().message.find("the last 10 % are root's (scheduling.percent_for_root)"),
            std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(submit(large("root", 0, 10'000))) << "the part that is kept for it";
  EXPECT_TRUE(submit(large("daemon", 900, 10'000))) << "the daemon's own user has it, too";
  const auto too_much = submit(large("root", 0, 100'000));
  ASSERT_FALSE(too_much) << "root too is held to the whole";
  EXPECT_NE(too_much.error().message.find("scheduling.max_specification_bytes)"),
            std::string::npos);
}

TEST_F(Admission, MembersOfAnArrayCountEachWithAllOfIt) {
  model::JobSpec array = large("ann", 1001, 30'000);
  array.array = *model::parse_array("0-3");
  EXPECT_FALSE(submit(array));
  array.array = *model::parse_array("0-2");
  ASSERT_TRUE(submit(array));
  EXPECT_EQ(of(1001).value() % 3, 0);
  EXPECT_GT(of(1001), base::Bytes(90'000));
  ASSERT_TRUE(act(2, model::JobAction::kCancel, 1001));
  EXPECT_LT(of(1001), base::Bytes(63'000));
}

TEST_F(Admission, WhatIsGoneCountsNoMore) {
  ASSERT_TRUE(submit(large("ann", 1001, 90'000)));
  ASSERT_FALSE(submit(large("ann", 1001, 90'000)));
  ASSERT_TRUE(act(1, model::JobAction::kCancel, 1001));
  EXPECT_EQ(of(1001), base::Bytes());
  EXPECT_TRUE(submit(large("ann", 1001, 90'000)));
}

TEST_F(Admission, EmptyArgumentsAreNotFree) {
  model::JobSpec spec = large("ann", 1001, 1);
  spec.command.resize(4'000);
  const auto refused = submit(spec);
  ASSERT_FALSE(refused) << "4,000 strings of 32 bytes";
  EXPECT_NE(refused.error().message.find("max_specification_bytes_per_user"), std::string::npos);
}

TEST_F(Admission, AJobDoesNotGrowPastTheLimitByAnUpdate) {
  ASSERT_TRUE(submit(large("ann", 1001, 90'000)));
  model::UpdateJob update;
  update.job = model::JobId(1);
  std::vector<model::Label> labels;
  for (int i = 0; i < 60; ++i) {
    labels.push_back({"key" + std::to_string(i), std::string(200, 'v')});
  }
  update.to.set(&model::JobSpec::labels, labels);
  const auto refused = core_.command({{"ann", 1001}, update}, kNoon, store::Headroom::kAmple);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
  labels.resize(2);
  update.to.set(&model::JobSpec::labels, labels);
  ASSERT_TRUE(core_.command({{"ann", 1001}, update}, kNoon, store::Headroom::kAmple));
  EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  EXPECT_EQ(of(1001), model::size_of(*core_.state().jobs.find(1)->spec));
}

TEST_F(Admission, CountsSurviveRecovery) {
  ASSERT_TRUE(submit(large("ann", 1001)));
  ASSERT_TRUE(submit(large("bob", 1002)));
  const auto again = decode_state(encode_state(core_.state()));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->load, core_.state().load);
  EXPECT_EQ(again->load.of(1001).waiting_jobs, 1U);
  EXPECT_EQ(again->load.in_all().waiting_jobs, 2U);
}

TEST_F(Admission, RequestIdsOfAUsersEndedJobsAreNotRememberedWithoutEnd) {
  const auto submit_and_cancel = [&](std::size_t number) {
    model::JobSpec spec = testing::spec(1);
    spec.request_id = "request-" + std::to_string(number);
    model::Command command = testing::submission(spec);
    std::get<model::SubmitJob>(command.body).hold = true;
    const auto reply = core_.command(command, kNoon + base::seconds(1) * std::int64_t(number),
                                     store::Headroom::kAmple);
    ASSERT_TRUE(reply) << reply.error().message;
    if (reply->changed) {
      ASSERT_TRUE(core_.command(testing::stop(reply->job.value),
                                kNoon + base::seconds(1) * std::int64_t(number),
                                store::Headroom::kAmple));
    }
    core_.take_batch();
  };
  for (std::size_t i = 1; i <= kMaxEndedRequests + 5; ++i) submit_and_cancel(i);
  EXPECT_EQ(core_.state().requests.size(), kMaxEndedRequests);
  EXPECT_FALSE(core_.state().requests.contains({"ann", "request-5"})) << "the oldest";
  EXPECT_TRUE(core_.state().requests.contains({"ann", "request-6"}));
  EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
}

TEST_F(Admission, ADryRunIsJudgedByTheSameLimits) {
  model::Command command = testing::submission(large("ann", 1001, 200'000));
  std::get<model::SubmitJob>(command.body).dry_run = true;
  EXPECT_FALSE(core_.command(command, kNoon, store::Headroom::kAmple));
}

TEST_F(Admission, AnAddressForNotificationsNeedsASiteThatNotifiesAndEvents) {
  const auto asked = [&](std::vector<model::NotifyOn> events) {
    model::JobSpec spec = testing::spec(0);
    spec.notify = std::move(events);
    spec.notify_to = "ann@example.org";
    return submit(std::move(spec));
  };
  for (const auto& events : {std::vector<model::NotifyOn>(), {model::NotifyOn::kEnd}}) {
    const auto refused = asked(events);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition);
    EXPECT_EQ(refused.error().field, events.empty() ? "notify_to" : "notify");
    EXPECT_NE(refused.error().message.find("execution.notify_command"), std::string::npos);
  }
  policy_.can_notify = true;
  core_.apply_policy(policy_, "test", kNoon);
  const auto refused = asked({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused.error().field, "notify_to");
  const auto accepted = asked({model::NotifyOn::kEnd});
  ASSERT_TRUE(accepted);
  EXPECT_EQ(core_.state().jobs.find(accepted->job.value)->spec->notify_to, "ann@example.org");
}

TEST(DefaultLimits, OneUserMaySubmitAnArrayOfTheLargestSizeToAQuietCluster) {
  Core core;
  core.apply_policy(model::Policy(), "test", kNoon);
  core.observe(execution::NodeObserved{testing::node_info("n1", 1)}, kNoon);
  model::JobSpec spec = testing::spec(1);
  spec.array = model::ArraySpec{{{0, 9'999, 1}}, 0};
  spec.workdir = std::string(1'000, 'd');
  const auto reply = core.command(testing::submission(spec), kNoon, store::Headroom::kAmple);
  EXPECT_TRUE(reply) << reply.error().message;
}

TEST(DefaultTimeLimit, OfTheSiteIsNoMoreThanItsLongestAndAbsentThatLongest) {
  model::Policy policy;
  policy.max_time_limit = base::hours(10);
  EXPECT_EQ(team_rules(policy, "").default_time_limit, base::hours(10));
  policy.default_time_limit = base::hours(4);
  EXPECT_EQ(team_rules(policy, "").default_time_limit, base::hours(4));
  EXPECT_EQ(team_rules(policy, "").default_time_limit_of, "");
  policy.max_time_limit = base::hours(1);
  EXPECT_EQ(team_rules(policy, "").default_time_limit, base::hours(1));
}

TEST(DefaultTimeLimit, IsNamedByItsOriginUntilTheJobHasOneOfItsOwn) {
  model::Policy policy;
  policy.organisation = model::Organisation{
      .teams = {{.name = "lab", .members = {{"ann", 1}}, .default_time_limit = base::hours(2)},
                {.name = "vision", .parent = "lab"},
                {.name = "other", .members = {{"ann", 1}}}}};
  Core core;
  core.apply_policy(policy, "test", kNoon);
  core.observe(execution::NodeObserved{testing::node_info("n1", 1)}, kNoon);
  const auto submit = [&](std::string team, base::Duration limit) {
    model::JobSpec spec = testing::spec(0);
    spec.team = std::move(team);
    spec.time_limit = limit;
    model::Command command = testing::submission(std::move(spec));
    command.caller.role = model::Role::kAdmin;
    const auto reply = core.command(command, kNoon, store::Headroom::kAmple);
    EXPECT_TRUE(reply.has_value()) << (reply ? "" : reply.error().message);
    return reply ? reply->job : model::JobId();
  };
  const auto of = [&](model::JobId job) {
    return core.state().jobs.find(job.value)->spec->time_limit_default_of;
  };
  EXPECT_EQ(of(submit("vision", {})), "lab");
  EXPECT_EQ(of(submit("other", {})), "");
  EXPECT_EQ(of(submit("lab", base::hours(1))), std::nullopt);
  const model::JobId job = submit("lab", {});
  model::UpdateJob update;
  update.job = job;
  update.to.set(&model::JobSpec::time_limit, base::hours(1));
  ASSERT_TRUE(core.command({model::root_caller(), update}, kNoon, store::Headroom::kAmple));
  EXPECT_EQ(of(job), std::nullopt);
}

}  // namespace
}  // namespace gpu_platform::controller
