#include "execution/kubernetes/kubernetes_engine.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/kubernetes_harness_fixture.h"
#include "execution/kubernetes/lease/standby.h"
#include "execution/process/kept_output.h"

namespace gpu_platform::execution::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using Kind = Act::Kind;
using kubernetes::Misbehaviour;

constexpr const char* kPods = "/api/v1/namespaces/jobs/pods";
constexpr const char* kClaims = "/apis/resource.k8s.io/v1/namespaces/jobs/resourceclaims";
constexpr const char* kServices = "/api/v1/namespaces/jobs/services";

class NoEnvironment : public EnvironmentSource {
  base::Result<std::string> environment(std::string_view) const override { return std::string(); }
};

class KubernetesEngineTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(harness_.open(), ""); }

  bool begins(const StartOrder& start) {
    harness_.engine().start(start);
    return harness_.wait_until([&] { return !harness_.told(start.attempt).started.empty(); });
  }
  Ended end_of(const StartOrder& start) {
    EXPECT_TRUE(harness_.wait_until([&] { return harness_.told(start.attempt).cleaned > 0; }));
    const Told told = harness_.told(start.attempt);
    return told.ended.empty() ? Ended{} : told.ended.front();
  }
  bool step_becomes(const StartOrder& start, const std::string& text) {
    return harness_.wait_until(
        [&] { return harness_.engine().step_of(start.attempt).find(text) != std::string::npos; });
  }
  std::string pod_key(const StartOrder& start) {
    return fmt::format("jobs/gp-test-{}-1-0", start.attempt.job.value);
  }
  std::size_t things() {
    return harness_.server().objects(kPods).size() + harness_.server().objects(kClaims).size() +
           harness_.server().objects(kServices).size();
  }

  KubernetesHarness harness_;
};

TEST_F(KubernetesEngineTest, APodHasJustTheGpuThatWasChosenAndPodSecurityAdmitsIt) {
  const StartOrder start = harness_.order(5, {Kind::kWaits, 0});
  ASSERT_TRUE(begins(start));
  const Json used = harness_.server().object(std::string(kClaims) + "/gp-test-5-1-0");
  const Json& results = at(used, {"status", "allocation", "devices"});
  ASSERT_EQ(list_at(results, {"results"}).size(), 1U);
  EXPECT_EQ(text_at(list_at(results, {"results"})[0], {"device"}), "gpu-5");
  const Json pod = harness_.server().object(std::string(kPods) + "/gp-test-5-1-0");
  EXPECT_EQ(at(pod, {"spec", "securityContext", "runAsNonRoot"}), true);
  EXPECT_EQ(number_at(pod, {"spec", "securityContext", "runAsUser"}), 1001);
  EXPECT_EQ(at(pod, {"spec", "automountServiceAccountToken"}), false);
  EXPECT_EQ(text_at(pod, {"spec", "restartPolicy"}), "Never");
}

TEST_F(KubernetesEngineTest, TheRanksOfAGangStartTogetherAndKnowEachOther) {
  const StartOrder start = harness_.gang(3, {Kind::kWaits, 4}, 3);
  ASSERT_TRUE(begins(start));
  EXPECT_EQ(harness_.pods_of(start.attempt).size(), 3U);
  EXPECT_EQ(harness_.server().objects(kServices).size(), 1U);
  harness_.let_end(start.attempt);
  EXPECT_EQ(end_of(start).exit.code, 4);
  harness_.engine().forget({start.attempt});
  EXPECT_TRUE(harness_.wait_until([&] { return things() == 0; }));
}

TEST_F(KubernetesEngineTest, AGangThatCannotStartAsAWholeIsTakenBack) {
  harness_.close();
  harness_.options().settings.start_timeout = base::seconds(4);  // the holder's, too
  harness_.reopen();
  const StartOrder holder = harness_.gang(3, {Kind::kIgnoresTerm, 0}, 1);
  ASSERT_TRUE(begins(holder));
  // The same GPU of the first node: one rank of three has no device.
  StartOrder start = harness_.gang(35, {Kind::kEnds, 0}, 3);
  harness_.engine().start(start);
  const Ended ended = end_of(start);
  EXPECT_EQ(ended.reason, model::EndReason::kLaunchFailed);
  EXPECT_THAT(ended.detail, HasSubstr("start_timeout"));
  EXPECT_THAT(ended.detail, HasSubstr("cannot allocate all claims"));
  harness_.engine().forget({start.attempt});
  EXPECT_TRUE(harness_.wait_until([&] { return harness_.pods_of(start.attempt).empty(); }));
  EXPECT_EQ(harness_.server().objects(kClaims).size(), 1U);
}

TEST_F(KubernetesEngineTest, AFailingRankEndsTheOthers) {
  const StartOrder start = harness_.gang(3, {Kind::kObeysTerm, 0}, 3);
  ASSERT_TRUE(begins(start));
  ASSERT_TRUE(harness_.runner().end("jobs/gp-test-3-1-1", {9}));
  EXPECT_EQ(end_of(start).exit.code, 9);
}

TEST_F(KubernetesEngineTest, WhatKubernetesTakesAwayIsPreempted) {
  const StartOrder start = harness_.order(1, {Kind::kObeysTerm, 0});
  ASSERT_TRUE(begins(start));
  ASSERT_TRUE(harness_.runner().disrupt(pod_key(start), "PreemptionByScheduler", "for another"));
  const Ended ended = end_of(start);
  EXPECT_EQ(ended.reason, model::EndReason::kPreempted);
  EXPECT_THAT(ended.detail, HasSubstr("PreemptionByScheduler"));
}

TEST_F(KubernetesEngineTest, APodThatSomebodyDeletesIsPreempted) {
  const StartOrder start = harness_.order(1, {Kind::kObeysTerm, 0});
  ASSERT_TRUE(begins(start));
  harness_.server().call("DELETE", std::string(kPods) + "/gp-test-1-1-0");
  EXPECT_EQ(end_of(start).reason, model::EndReason::kPreempted);
}

TEST_F(KubernetesEngineTest, ANodeThatIsGoneLosesItsJobs) {
  const StartOrder start = harness_.order(1, {Kind::kIgnoresTerm, 0});
  ASSERT_TRUE(begins(start));
  harness_.runner().remove_node("node-0");
  const Ended ended = end_of(start);
  EXPECT_EQ(ended.exit.lost, model::Lost::kNodeLost);
}

TEST_F(KubernetesEngineTest, APodOfAnotherNamespaceWithTheSameNameAndLabelsIsNotTheJobs) {
  const StartOrder start = harness_.order(1, {Kind::kWaits, 6});
  ASSERT_TRUE(begins(start));
  Json copy = harness_.server().object(std::string(kPods) + "/gp-test-1-1-0");
  copy["metadata"] = {{"name", "gp-test-1-1-0"}, {"labels", copy["metadata"]["labels"]}};
  copy["status"] = {{"phase", "Failed"}};
  harness_.server().call("POST", "/api/v1/namespaces", {{"metadata", {{"name", "elsewhere"}}}});
  const auto made = harness_.server().call("POST", "/api/v1/namespaces/elsewhere/pods", copy);
  ASSERT_EQ(made.status, 201) << made.body;
  const StartOrder later = harness_.order(2, {Kind::kEnds, 0});  // what is seen is in order
  ASSERT_TRUE(begins(later));
  EXPECT_TRUE(harness_.told(start.attempt).ended.empty());
  harness_.let_end(start.attempt);
  EXPECT_EQ(end_of(start).exit.code, 6);
}

TEST_F(KubernetesEngineTest, AContainerThatUsedUpItsMemoryIsOutOfMemory) {
  const StartOrder start = harness_.order(1, {Kind::kIgnoresTerm, 0});
  ASSERT_TRUE(begins(start));
  ASSERT_TRUE(harness_.runner().end(pod_key(start), {137, "OOMKilled"}));
  const Ended ended = end_of(start);
  EXPECT_EQ(ended.reason, model::EndReason::kOutOfMemory);
  EXPECT_EQ(ended.exit.code, 137);
}

TEST_F(KubernetesEngineTest, ARefusalForQuotaIsWaitedForWithItsWords) {
  harness_.server().misbehave({.what = Misbehaviour::What::kAnswerError,
                               .method = "POST",
                               .path = kPods,
                               .times = 0,
                               .error = {.code = 403, .message = "exceeded quota: team"}});
  const StartOrder start = harness_.order(1, {Kind::kEnds, 0});
  harness_.engine().start(start);
  EXPECT_TRUE(step_becomes(start, "exceeded quota: team"));
  harness_.server().heal();
  EXPECT_EQ(end_of(start).exit.code, 0);
  EXPECT_EQ(harness_.engine().step_of(start.attempt), "");
}

TEST_F(KubernetesEngineTest, AnImageThatIsNotThereFailsWithTheRegistrysWords) {
  harness_.set_moves(false);
  const StartOrder start = harness_.order(1, {Kind::kIgnoresTerm, 0});
  harness_.engine().start(start);
  ASSERT_TRUE(harness_.wait_until([&] {
    harness_.runner().bind_all();
    return harness_.runner().fail_image(pod_key(start), "busybox:9: not found");
  }));
  ASSERT_TRUE(harness_.wait_until([&] {
    const Json pod = harness_.server().object(std::string(kPods) + "/gp-test-1-1-0");
    return at(pod, {"metadata", "deletionTimestamp"}).is_string();
  }));
  harness_.set_moves(true);
  const Ended ended = end_of(start);
  EXPECT_EQ(ended.reason, model::EndReason::kLaunchFailed);
  EXPECT_THAT(ended.detail, HasSubstr("busybox:9: not found"));
}

TEST_F(KubernetesEngineTest, NothingIsMadeTwiceByAServerThatEndsConnectionsAfterTheWork) {
  harness_.server().misbehave(
      {.what = Misbehaviour::What::kCloseAfter, .which = Misbehaviour::Which::kWrites, .times = 6});
  const StartOrder start = harness_.order(1, {Kind::kEnds, 3});
  harness_.engine().start(start);
  EXPECT_EQ(end_of(start).exit.code, 3);
  EXPECT_EQ(harness_.runs(start.attempt), 1);
  harness_.engine().forget({start.attempt});
  EXPECT_TRUE(harness_.wait_until([&] { return things() == 0; }));
}

TEST_F(KubernetesEngineTest, AServerThatGoesAwayAndComesBackLosesNothing) {
  const StartOrder runs = harness_.order(1, {Kind::kWaits, 2});
  ASSERT_TRUE(begins(runs));
  harness_.server().go_away();
  const StartOrder waits = harness_.order(2, {Kind::kEnds, 5});
  harness_.engine().start(waits);
  EXPECT_TRUE(step_becomes(waits, "does not answer"));
  harness_.server().come_back();
  EXPECT_EQ(end_of(waits).exit.code, 5);
  harness_.let_end(runs.attempt);
  EXPECT_EQ(end_of(runs).exit.code, 2);
}

TEST_F(KubernetesEngineTest, WatchesThatExpireDoubleAndReorderChangeNothing) {
  harness_.server().double_events(true);
  std::vector<StartOrder> starts;
  for (std::uint64_t job = 1; job <= 8; ++job) {
    starts.push_back(harness_.order(job, {Kind::kEnds, static_cast<std::uint8_t>(job)}));
    harness_.engine().start(starts.back());
    if (job % 3 == 0) harness_.server().expire_watches();
    if (job % 3 == 1) harness_.server().end_watches();
    harness_.move();
  }
  for (const StartOrder& start : starts) {
    EXPECT_EQ(end_of(start).exit.code, start.attempt.job.value);
    EXPECT_EQ(harness_.runs(start.attempt), 1);
  }
}

TEST_F(KubernetesEngineTest, WhatTheCoreDoesNotKnowIsRemovedAndTheRestOfTheClusterIsLeftAlone) {
  const StartOrder known = harness_.order(1, {Kind::kWaits, 0});
  const StartOrder unknown = harness_.order(2, {Kind::kObeysTerm, 0});
  ASSERT_TRUE(begins(known));
  ASSERT_TRUE(begins(unknown));
  const Json others = {{"apiVersion", "v1"},
                       {"kind", "Pod"},
                       {"metadata", {{"name", "others"}, {"labels", {{"gpu-platform/job", "2"}}}}},
                       {"spec", {{"containers", {{{"name", "main"}, {"image", "x"}}}}}}};
  harness_.server().call("POST", kPods, others);
  harness_.reopen();
  harness_.engine().adopt({{known, model::AttemptState::kRunning}});
  EXPECT_TRUE(harness_.wait_until([&] { return harness_.pods_of(unknown.attempt).empty(); }));
  EXPECT_EQ(harness_.pods_of(known.attempt).size(), 1U);
  EXPECT_FALSE(harness_.server().object(std::string(kPods) + "/others").is_null());
  EXPECT_TRUE(harness_.told(unknown.attempt).ended.empty());
}

TEST_F(KubernetesEngineTest, OutputIsFollowedWhileItIsReadAndCompleteAtTheEnd) {
  const StartOrder start = harness_.order(1, {Kind::kWaits, 0});
  ASSERT_TRUE(begins(start));
  const std::string path = harness_.engine().output_of(start.attempt);
  const auto kept = [&] {
    const auto range = read_kept_output(path, 0, 1 << 20);
    return range ? range->bytes : range.error().message;
  };
  harness_.server().append_log("jobs", "gp-test-1-1-0", "first\n");
  harness_.engine().follow_output(start.attempt);
  EXPECT_TRUE(harness_.wait_until([&] { return kept() == "first\n"; }));
  harness_.server().append_log("jobs", "gp-test-1-1-0", "second\n");
  EXPECT_TRUE(harness_.wait_until([&] { return kept() == "first\nsecond\n"; }));
  harness_.server().drop_connections();
  harness_.server().append_log("jobs", "gp-test-1-1-0", "third\n");
  harness_.let_end(start.attempt);
  end_of(start);
  EXPECT_TRUE(harness_.wait_until([&] { return kept() == "first\nsecond\nthird\n"; })) << kept();
}

TEST_F(KubernetesEngineTest, AResetIsRefusedForEachGpuInWords) {
  harness_.engine().reset(
      {model::NodeId(1), "gpu-1", {"GPU-1", "GPU-2"}, model::EngineKind::kKubernetes});
  ASSERT_TRUE(harness_.wait_until([&] { return harness_.all_told().resets().size() == 2; }));
  const std::vector<ResetEnded> resets = harness_.all_told().resets();
  EXPECT_EQ(resets[1].gpu_uuid, "GPU-2");
  EXPECT_EQ(resets[1].node_name, "gpu-1");
  EXPECT_NE(resets[1].failure.find("have the cluster's operator reset it"), std::string::npos);
}

TEST_F(KubernetesEngineTest, ASecondControllerIsRefusedAndTheSameOneIsNot) {
  KubernetesEngineOptions second = harness_.options();
  second.lease.identity = "another";
  second.lease.duration = base::seconds(6);
  second.open_timeout = base::seconds(30);
  const NoEnvironment none;
  ToldByAttempt told;
  harness_.close();
  harness_.options().lease.duration = base::seconds(6);  // of which it renews in time
  harness_.reopen();
  const auto refused = KubernetesEngine::open(second, none, told);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kFailedPrecondition);
  EXPECT_THAT(refused.error().message, HasSubstr("harness"));
  // A holder that renews no more has lost it.
  harness_.close();
  EXPECT_TRUE(KubernetesEngine::open(second, none, told).has_value());
}

TEST_F(KubernetesEngineTest, AStandbyHasTheLeaseAtOnceWhenItIsReleased) {
  StandbyOptions standby;
  standby.access = harness_.options().access;
  standby.settings = harness_.options().settings;
  standby.lease = harness_.options().lease;
  standby.lease.identity = "another";
  std::vector<std::string> told;
  standby.tell = [&](const std::string& line) { told.push_back(line); };
  int waits = 0;
  standby.wait = [&](base::Duration) {
    if (++waits == 3) {
      harness_.close();
      EXPECT_TRUE(release_lease(standby.access, harness_.options().lease, base::seconds(10)));
    }
    return waits < 5;
  };
  EXPECT_EQ(stand_by(standby), true);
  EXPECT_THAT(told, ElementsAre(HasSubstr("is held by harness")));
  EXPECT_EQ(waits, 3);
  // Of another holder nothing is released.
  EXPECT_TRUE(release_lease(standby.access, harness_.options().lease, base::seconds(10)));
  standby.lease.identity = "a third one";
  standby.wait = [](base::Duration) { return false; };
  EXPECT_EQ(stand_by(standby), false) << "it was told to end";
}

TEST_F(KubernetesEngineTest, AStandbyThatLacksARightEndsWithItsName) {
  harness_.server().lack("create", "pods");
  StandbyOptions standby;
  standby.access = harness_.options().access;
  standby.settings = harness_.options().settings;
  standby.lease = harness_.options().lease;
  standby.wait = [](base::Duration) { return true; };
  standby.tell = [](const std::string&) {};
  const auto refused = stand_by(standby);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("create pods"));
}

TEST(LeaseWatch, ALeaseIsFreeWhenItsHolderHasNotRenewedItForItsDuration) {
  LeaseWatch watch({"ns", "lease", "us", base::seconds(15)});
  const auto at = [](std::int64_t seconds) { return base::seconds(100 + seconds).value(); };
  LeaseState state{.holder = "them", .acquired = {}, .renewed = "1", .resource_version = {}};
  EXPECT_FALSE(watch.is_free(state, at(0)));
  EXPECT_FALSE(watch.is_free(state, at(14)));
  state.renewed = "2";
  EXPECT_FALSE(watch.is_free(state, at(16)));
  EXPECT_FALSE(watch.is_free(state, at(30)));
  EXPECT_TRUE(watch.is_free(state, at(31)));
  state.holder = "others";
  EXPECT_FALSE(watch.is_free(state, at(32))) << "another one has taken it";
  state.holder.clear();
  EXPECT_TRUE(watch.is_free(state, at(32)));
  state.holder = "us";
  EXPECT_TRUE(watch.is_free(state, at(32)));
}

TEST_F(KubernetesEngineTest, MissingRightsAreNamedBeforeTheFirstJob) {
  harness_.close();
  harness_.server().lack("create", "pods");
  harness_.server().lack("get", "pods/log");
  const NoEnvironment none;
  ToldByAttempt told;
  const auto refused = KubernetesEngine::open(harness_.options(), none, told);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kPermissionDenied);
  EXPECT_THAT(refused.error().message, HasSubstr("create pods in namespace jobs"));
  EXPECT_THAT(refused.error().message, HasSubstr("get pods/log in namespace jobs"));
}

// The error of an engine that has not had the cluster before; its lease is free afterwards.
class NewcomerTest : public KubernetesEngineTest {
 protected:
  std::string refusal() {
    harness_.close();
    KubernetesEngineOptions newcomer = harness_.options();
    newcomer.lease.identity = "newcomer";
    newcomer.history = ClusterHistory::kNew;
    EXPECT_TRUE(release_lease(newcomer.access, harness_.options().lease, base::seconds(10)));
    const NoEnvironment none;
    ToldByAttempt told;
    const auto opened = KubernetesEngine::open(newcomer, none, told);
    if (opened) return {};
    EXPECT_EQ(opened.error().code, base::ErrorCode::kFailedPrecondition);
    EXPECT_EQ(opened.error().field, "engines.kubernetes.cluster");
    return opened.error().message;
  }
  std::string lease_holder() {
    for (const Json& lease :
         harness_.server().objects(fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases",
                                               harness_.options().lease.namespace_name))) {
      return std::string(text_at(lease, {"spec", "holderIdentity"}));
    }
    return {};
  }
};

TEST_F(NewcomerTest, IsRefusedWherePodsOfItsNameAreLeftAndNothingHappensToThem) {
  const StartOrder start = harness_.order(1, {Kind::kWaits, 0});
  ASSERT_TRUE(begins(start));
  const std::string said = refusal();
  EXPECT_THAT(said, HasSubstr("pod jobs/gp-test-1-1-0"));
  EXPECT_THAT(said, HasSubstr("kubernetes-identity"));
  EXPECT_THAT(said, HasSubstr("engines.kubernetes.cluster"));
  EXPECT_THAT(said, HasSubstr("kubectl delete pods,resourceclaims --all-namespaces --wait=false "
                              "--selector gpu-platform/cluster=test"));
  EXPECT_EQ(lease_holder(), "") << "the next one has it at once";
  harness_.reopen();
  harness_.engine().adopt({{start, model::AttemptState::kRunning}});
  harness_.let_end(start.attempt);
  EXPECT_EQ(end_of(start).exit.code, 0);
}

TEST_F(NewcomerTest, IsRefusedWhereAClaimOfItsNameIsLeft) {
  const auto made = harness_.server().call("POST", kClaims,
                                           {{"apiVersion", "resource.k8s.io/v1"},
                                            {"kind", "ResourceClaim"},
                                            {"metadata",
                                             {{"name", "gp-test-7-1-0"},
                                              {"labels",
                                               {{"gpu-platform/cluster", "test"},
                                                {"gpu-platform/job", "7"},
                                                {"gpu-platform/attempt", "1"},
                                                {"gpu-platform/rank", "0"}}}}},
                                            {"spec", Json::object()}});
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_THAT(refusal(), HasSubstr("claim jobs/gp-test-7-1-0"));
}

TEST_F(NewcomerTest, StartsWhereThePodsAreOfOtherNames) {
  const Json pod = {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"name", "others"}, {"labels", {{"gpu-platform/cluster", "test-2"}}}}},
      {"spec", {{"containers", {{{"name", "main"}, {"image", "x"}}}}}}};
  ASSERT_EQ(harness_.server().call("POST", kPods, pod).status, 201);
  EXPECT_EQ(refusal(), "");
}

TEST_F(NewcomerTest, DoesNotBeginWithAClusterThatItCannotSee) {
  harness_.close();
  harness_.server().go_away();
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  harness_.options().open_timeout = base::milliseconds(200);
  const NoEnvironment none;
  ToldByAttempt told;
  EXPECT_TRUE(KubernetesEngine::open(harness_.options(), none, told).has_value());
  harness_.options().history = ClusterHistory::kNew;
  const auto refused = KubernetesEngine::open(harness_.options(), none, told);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("when the cluster answers"));
}

TEST_F(KubernetesEngineTest, AClusterWithoutDynamicAllocationIsRefusedWithWhatHelps) {
  harness_.close();
  harness_.server().set_served("resource.k8s.io/v1", false);
  const NoEnvironment none;
  ToldByAttempt told;
  const auto refused = KubernetesEngine::open(harness_.options(), none, told);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("counts"));
  EXPECT_EQ(refused.error().field, "engines.kubernetes.devices");
}

TEST_F(KubernetesEngineTest, PodsThatTheUserOwnsAreBoundByThePlatformItself) {
  harness_.close();
  harness_.options().settings.devices = DeviceMode::kOwned;
  harness_.reopen();
  const StartOrder start = harness_.order(7, {Kind::kWaits, 3});
  ASSERT_TRUE(begins(start)) << harness_.engine().step_of(start.attempt)
                             << harness_.server().object(std::string(kClaims) + "/gp-test-7-1-0");
  EXPECT_EQ(harness_.server().count("POST", std::string(kPods) + "/gp-test-7-1-0/binding"), 1U);
  harness_.let_end(start.attempt);
  EXPECT_EQ(end_of(start).exit.code, 3);
  harness_.engine().forget({start.attempt});
  EXPECT_TRUE(harness_.wait_until([&] { return things() == 0; }));
}

}  // namespace
}  // namespace gpu_platform::execution::testing
