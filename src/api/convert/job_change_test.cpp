#include "api/convert/job_change.h"

#include <gtest/gtest.h>

#include <array>
#include <csignal>

#include "model/job_signal.h"

namespace gpu_platform::api {
namespace {

TEST(LimitSignal, IsASignalAndSecondsBeforeTheLimit) {
  const auto read = [](std::string_view text) {
    const auto signal = to_limit_signal(text);
    EXPECT_TRUE(signal) << text;
    return signal.value_or(model::LimitSignal());
  };
  EXPECT_EQ(read("USR1@120"), (model::LimitSignal{SIGUSR1, base::seconds(120)}));
  EXPECT_EQ(read("sigusr1"), (model::LimitSignal{SIGUSR1, base::seconds(60)}));
  EXPECT_EQ(read("10@1"), (model::LimitSignal{10, base::seconds(1)}));
  EXPECT_EQ(limit_signal_text(read("SIGTERM@5")), "TERM@5");
  EXPECT_EQ(read("B:USR1@120"), (model::LimitSignal{SIGUSR1, base::seconds(120), true}));
  EXPECT_EQ(limit_signal_text(read("B:10")), "B:USR1@60");
}

TEST(LimitSignal, OfAnotherFormIsRefusedWithTheRightOne) {
  for (const char* bad :
       {"", "@5", "USR1@", "USR1@0", "USR1@65536", "USR1@5@5", "65@1", "0@1", "KILL", "9@5",
        "STOP@5", "B:", "B:KILL", "b:USR1", "R:USR1", "USR1 @5", "-1@5"}) {
    const auto signal = to_limit_signal(bad);
    ASSERT_FALSE(signal) << bad;
    EXPECT_EQ(signal.error().field, "limit_signal");
    EXPECT_NE(signal.error().message.find("USR1@120"), std::string::npos) << bad;
  }
}

TEST(Update, GpusWithoutAShareAreWhole) {
  v1::UpdateJobRequest request;
  request.mutable_spec()->set_gpus(1);
  auto update = to_model(request, Nodes());
  ASSERT_TRUE(update) << update.error().message;
  const auto* share = update->to.get(&model::ResourceRequest::share_per_gpu);
  ASSERT_NE(share, nullptr);
  EXPECT_EQ(*share, base::kWholeGpu);
  const auto* mode = update->to.get(&model::ResourceRequest::share_mode);
  ASSERT_NE(mode, nullptr) << "whole GPUs keep nothing of a part";
  EXPECT_EQ(*mode, std::nullopt);
  request.mutable_spec()->set_gpu_share(0.25);
  update = to_model(request, Nodes());
  ASSERT_TRUE(update) << update.error().message;
  EXPECT_EQ(*update->to.get(&model::ResourceRequest::share_per_gpu), base::GpuShare(1750));
  v1::UpdateJobRequest other;
  other.mutable_spec()->set_cpus(2);
  update = to_model(other, Nodes());
  ASSERT_TRUE(update) << update.error().message;
  EXPECT_EQ(update->to.get(&model::ResourceRequest::share_per_gpu), nullptr);
}

TEST(JobSignal, IsANameOrANumberInAnyForm) {
  for (const char* text : {"USR1", "usr1", "SIGUSR1", "sigusr1", "10"}) {
    EXPECT_EQ(to_job_signal(text).value_or(0), SIGUSR1) << text;
  }
  EXPECT_EQ(to_job_signal("STOP").value_or(0), SIGSTOP);
}

TEST(JobSignal, NumbersAreThoseOfTheHost) {
  EXPECT_EQ(model::kJobSignals,
            (std::array<std::uint8_t, 12>{SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGUSR1, SIGUSR2,
                                          SIGALRM, SIGTERM, SIGCONT, SIGSTOP, SIGTSTP, SIGWINCH}));
}

TEST(JobSignal, ThatEndsAJobOrIsOfTheKernelIsRefusedWithTheAllowedOnes) {
  for (const char* bad :
       {"", "KILL", "9", "SEGV", "CHLD", "64", "65", "0", "-1", "FOO", "USR1@5"}) {
    const auto signal = to_job_signal(bad);
    ASSERT_FALSE(signal) << bad;
    EXPECT_EQ(signal.error().field, "signal");
    EXPECT_NE(signal.error().message.find("USR1, USR2"), std::string::npos) << bad;
  }
}

TEST(JobRef, IsAJobOrAMemberOfAnArray) {
  const auto job = to_job_ref("42");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->job, model::JobId(42));
  EXPECT_EQ(job->index, std::nullopt);
  const auto member = to_job_ref("40_4294967294");
  ASSERT_TRUE(member);
  EXPECT_EQ(member->job, model::JobId(40));
  EXPECT_EQ(member->index, 4294967294U);
  for (const char* bad :
       {"", "_", "40_", "_3", "0_3", "40_x", "40_-1", "40_3_3", "40_4294967295", "4 0"}) {
    const auto refused = to_job_ref(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().field, "id");
  }
}

TEST(Dependencies, AreKindsAndJobs) {
  const auto all = to_dependencies("afterok:1:2,afterany:40_3,afternotok:4");
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 4U);
  EXPECT_EQ((*all)[1].kind, model::DependencyKind::kAfterOk);
  EXPECT_EQ((*all)[1].on.job, model::JobId(2));
  EXPECT_EQ((*all)[2].kind, model::DependencyKind::kAfterAny);
  EXPECT_EQ((*all)[2].on.index, 3U);
  EXPECT_EQ((*all)[3].kind, model::DependencyKind::kAfterNotOk);
  EXPECT_TRUE(to_dependencies("")->empty());
  const auto of_slurm = to_dependencies("after:12,aftercorr:40,singleton");
  ASSERT_TRUE(of_slurm.has_value());
  EXPECT_EQ((*of_slurm)[0].kind, model::DependencyKind::kAfter);
  EXPECT_EQ((*of_slurm)[1].kind, model::DependencyKind::kAfterCorr);
  EXPECT_EQ((*of_slurm)[2].kind, model::DependencyKind::kSingleton);
}

TEST(Dependencies, OfAnotherFormAreRefusedWithTheRightOne) {
  for (const char* bad : {"afterok", "afterok:", "afterok:x", "after:1+5", "singleton:1", "1",
                          "afterok:1,", ",afterok:1", "afterok:1?afterany:2", "afterok:1,?",
                          "AFTEROK:1", "afterok:1:", "aftercorr", "afterok:1+5"}) {
    const auto refused = to_dependencies(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().field, "dependency");
    EXPECT_NE(refused.error().message.find("afterany:40_3"), std::string::npos) << bad;
  }
  std::string many = "afterok";
  for (int i = 0; i < 257; ++i) many += ":1";
  EXPECT_FALSE(to_dependencies(many));
}

TEST(ActOnJobs, AreTheCallersUnlessAnotherUserIsNamed) {
  const model::Caller ada{"ada", 1000};
  v1::ActOnJobsRequest request;
  request.set_action(v1::JOB_ACTION_HOLD);
  request.set_name("train-*");
  EXPECT_EQ(to_model(request, ada)->which.user, "ada");
  request.set_user("bob");
  EXPECT_EQ(to_model(request, ada)->which.user, "bob");
  request.clear_user();
  request.set_all(true);
  EXPECT_EQ(to_model(request, ada)->which.user, "ada");
}

TEST(ActOnJobs, AreThoseOfAllUsersOnlyForACallerWhoReachesOthers) {
  v1::ActOnJobsRequest request;
  request.set_action(v1::JOB_ACTION_CANCEL);
  request.set_all_users(true);
  model::Caller caller{"ada", 1000};
  EXPECT_EQ(to_model(request, caller).error().code, base::ErrorCode::kPermissionDenied);
  for (const auto reach : {model::Reach::kTeams, model::Reach::kAll}) {
    caller.reach = reach;
    EXPECT_EQ(to_model(request, caller)->which.user, std::nullopt);
    request.set_all_users(false);
    request.set_all(true);
    EXPECT_EQ(to_model(request, caller)->which.user, "ada") << "also for those who could do more";
    request.set_all(false);
    request.set_all_users(true);
  }
  request.set_all(true);
  EXPECT_EQ(to_model(request, caller).error().field, "all_users");
  request.set_all(false);
  request.set_user("bob");
  EXPECT_EQ(to_model(request, caller).error().field, "all_users");
  request.set_all_users(false);
  request.set_all(true);
  EXPECT_EQ(to_model(request, caller).error().field, "all");
}

TEST(ActOnJobs, WithoutAnyBoundAreRefused) {
  v1::ActOnJobsRequest request;
  request.set_action(v1::JOB_ACTION_CANCEL);
  const auto refused = to_model(request, {"ada", 1000});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "all");
}

}  // namespace
}  // namespace gpu_platform::api
