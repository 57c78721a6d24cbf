#include "execution/kubernetes/pods/pod_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/prng.h"
#include "execution/kubernetes/cluster/cluster_fixture.h"
#include "execution/kubernetes/names.h"

namespace gpu_platform::execution {
namespace {

using Json = nlohmann::json;

Json metadata() {
  return Json::parse(R"({"name":"gp-lab-42-2-1","namespace":"jobs","uid":"b017ec50",
    "labels":{"gpu-platform/cluster":"lab","gpu-platform/job":"42","gpu-platform/attempt":"2",
              "gpu-platform/rank":"1"},
    "finalizers":["gpu-platform/attempt"]})");
}

Json a_pod(const std::string& status) {
  return {
      {"metadata", metadata()}, {"spec", {{"nodeName", "kn1"}}}, {"status", Json::parse(status)}};
}

PodView view(const std::string& status) {
  const auto pod = view_of_pod(a_pod(status), "lab");
  EXPECT_TRUE(pod.has_value());
  return pod.value_or(PodView());
}

TEST(PodViews, KnowTheirAttempt) {
  const PodView pod = view(R"({"phase":"Pending"})");
  EXPECT_EQ(pod.name, "gp-lab-42-2-1");
  EXPECT_EQ(pod.namespace_name, "jobs");
  EXPECT_EQ(pod.uid, "b017ec50");
  EXPECT_EQ(pod.attempt, (model::AttemptId{model::JobId(42), 2}));
  EXPECT_EQ(pod.rank, 1U);
  EXPECT_EQ(pod.node, "kn1");
  EXPECT_EQ(pod.finalizer_at, 0U);
  EXPECT_FALSE(pod.is_being_deleted);
  EXPECT_FALSE(pod.is_over());
}

TEST(PodViews, AreOfThisClustersPlatformAlone) {
  Json pod = a_pod("{}");
  EXPECT_FALSE(view_of_pod(pod, "other").has_value());
  for (const std::string_view label : {kJobLabel, kAttemptLabel, kRankLabel}) {
    Json without = pod;
    without["metadata"]["labels"].erase(std::string(label));
    EXPECT_FALSE(view_of_pod(without, "lab").has_value()) << label;
    without["metadata"]["labels"][std::string(label)] = "-1";
    EXPECT_FALSE(view_of_pod(without, "lab").has_value()) << label;
    without["metadata"]["labels"][std::string(label)] = "99999999999999999999";
    EXPECT_FALSE(view_of_pod(without, "lab").has_value()) << label;
  }
}

TEST(PodViews, LabelsThatAUserCopiesMakeNoPodOfThePlatform) {
  Json pod = a_pod("{}");
  pod["metadata"]["name"] = "mine";
  EXPECT_FALSE(view_of_pod(pod, "lab").has_value());
  EXPECT_FALSE(own_claim_of(pod, "lab").has_value());
  pod["metadata"]["name"] = "gp-lab-42-2-32767";
  pod["metadata"]["labels"]["gpu-platform/rank"] = "32767";
  EXPECT_TRUE(view_of_pod(pod, "lab").has_value()) << "of 4,096 nodes of eight GPUs, a pod each";
  pod["metadata"]["name"] = "gp-lab-42-2-4294967295";
  pod["metadata"]["labels"]["gpu-platform/rank"] = "4294967295";
  EXPECT_FALSE(view_of_pod(pod, "lab").has_value()) << "no job has so many pods";
}

TEST(PodViews, AGatedPodSaysWhatItWaitsFor) {
  Json pod = a_pod(R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False",
    "lastProbeTime":null,"reason":"SchedulingGated",
    "message":"Scheduling is blocked due to non-empty scheduling gates"}]})");
  pod["spec"] =
      Json::parse(R"({"schedulingGates":[{"name":"other"},{"name":"gpu-platform/gang"}]})");
  const PodView gated = view_of_pod(pod, "lab").value_or(PodView());
  EXPECT_EQ(gated.gang_gate_at, 1U) << "a webhook has put another before it";
  EXPECT_EQ(gated.node, "");
  EXPECT_EQ(gated.waiting,
            "SchedulingGated: Scheduling is blocked due to non-empty scheduling gates");
}

TEST(PodViews, APodThatDoesNotFitSaysWhy) {
  const PodView pod = view(R"({"phase":"Pending","conditions":[{"type":"PodScheduled",
    "observedGeneration":2,"status":"False","reason":"Unschedulable",
    "message":"0/52 nodes are available: 52 cannot allocate all claims."}]})");
  EXPECT_EQ(pod.waiting, "Unschedulable: 0/52 nodes are available: 52 cannot allocate all claims.");
  EXPECT_FALSE(pod.is_image_error);
}

TEST(PodViews, AnImageThatCannotBeHadIsAnImageError) {
  for (const std::string reason : {"ErrImagePull", "ImagePullBackOff", "InvalidImageName"}) {
    const PodView pod =
        view(R"({"phase":"Pending","containerStatuses":[{"name":"main","ready":false,
      "state":{"waiting":{"reason":")" +
             reason + R"(","message":"pull access\ndenied"}}}]})");
    EXPECT_TRUE(pod.is_image_error);
    EXPECT_EQ(pod.waiting, reason + ": pull access denied");
  }
}

TEST(PodViews, AContainerThatCannotBeMadeIsNoImageError) {
  for (const std::string reason :
       {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}) {
    const PodView pod = view(R"({"phase":"Pending","containerStatuses":[{"name":"main",
      "state":{"waiting":{"reason":")" +
                             reason + R"("}}}]})");
    EXPECT_FALSE(pod.is_image_error);
    EXPECT_EQ(pod.waiting, reason);
  }
}

TEST(PodViews, APodThatIsBeingMadeWaitsForNothing) {
  EXPECT_EQ(view(R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"True"}],
    "containerStatuses":[{"name":"main","state":{"waiting":{"reason":"ContainerCreating"}}}]})")
                .waiting,
            "");
}

TEST(PodViews, ARunningPodHasAStart) {
  const PodView pod = view(R"({"phase":"Running","podIP":"10.0.0.7","containerStatuses":[
    {"name":"sidecar","state":{"running":{"startedAt":"2026-11-22T08:00:00Z"}}},
    {"name":"main","ready":true,"state":{"running":{"startedAt":"2026-11-22T08:36:36Z"}}}]})");
  EXPECT_EQ(pod.phase, PodPhase::kRunning);
  EXPECT_EQ(pod.started_at, parse_time("2026-11-22T08:36:36Z"));
  EXPECT_FALSE(pod.finished_at.is_set());
  EXPECT_FALSE(pod.exit_code.has_value());
  EXPECT_EQ(pod.ip, "10.0.0.7");
}

TEST(PodViews, AnEndHasItsExitCodeAndTimes) {
  const PodView pod = view(R"({"phase":"Succeeded","containerStatuses":[{"name":"main",
    "state":{"terminated":{"exitCode":0,"reason":"Completed","startedAt":"2026-11-22T08:36:36Z",
    "finishedAt":"2026-11-22T08:36:38Z","containerID":"containerd://3273d3"}}}]})");
  EXPECT_TRUE(pod.is_over());
  EXPECT_EQ(pod.exit_code, 0);
  EXPECT_EQ(pod.end_reason, "Completed");
  EXPECT_EQ(pod.finished_at - pod.started_at, base::seconds(2));
  EXPECT_EQ(pod.disruption, Disruption::kNone);
}

TEST(PodViews, AContainerThatCouldNotStartHasNoStart) {
  const PodView pod = view(R"({"phase":"Failed","containerStatuses":[{"name":"main",
    "state":{"terminated":{"exitCode":128,"reason":"StartError","message":"exec: no such file",
    "startedAt":"1970-01-01T00:00:00Z","finishedAt":"2026-11-22T08:36:38Z"}}}]})");
  EXPECT_FALSE(pod.started_at.is_set());
  EXPECT_EQ(pod.exit_code, 128);
  EXPECT_EQ(pod.end_reason, "StartError");
  EXPECT_EQ(pod.end_message, "exec: no such file");
}

TEST(PodViews, ThePodsOwnReasonCountsMoreThanItsContainers) {
  const PodView pod = view(R"({"phase":"Failed","reason":"DeadlineExceeded",
    "message":"Pod was active on the node longer than the specified deadline",
    "containerStatuses":[{"name":"main","state":{"terminated":{"exitCode":137,"reason":"Error"}}}]})");
  EXPECT_EQ(pod.end_reason, "DeadlineExceeded");
  EXPECT_EQ(pod.exit_code, 137);
  EXPECT_EQ(view(R"({"phase":"Failed","reason":"OutOfcpu","message":"Node didn't have enough"})")
                .end_reason,
            "OutOfcpu");
}

PodView disrupted(const std::string& reason, const std::string& pod_reason = "") {
  return view(R"({"phase":"Failed","reason":")" + pod_reason +
              R"(","message":"The node was low on resource: memory.","conditions":[{
      "type":"DisruptionTarget","status":"True","reason":")" +
              reason + R"(","message":"in its words"}]})");
}

TEST(Disruptions, AreToldByWhoEndedThePod) {
  EXPECT_EQ(disrupted("PreemptionByScheduler").disruption, Disruption::kPreempted);
  EXPECT_EQ(disrupted("EvictionByEvictionAPI").disruption, Disruption::kPreempted);
  EXPECT_EQ(disrupted("DeletionByTaintManager").disruption, Disruption::kPreempted);
  EXPECT_EQ(disrupted("SomethingNew").disruption, Disruption::kPreempted);
  EXPECT_EQ(disrupted("DeletionByPodGC").disruption, Disruption::kNodeLost);
  EXPECT_EQ(disrupted("DeletionByPodGC").disruption_text, "DeletionByPodGC: in its words");
  EXPECT_EQ(view(R"({"phase":"Running","reason":"NodeLost","message":"gone"})").disruption,
            Disruption::kNodeLost);
}

TEST(Disruptions, TheKubeletEndsPodsForPressureOrForAShutdown) {
  EXPECT_EQ(disrupted("TerminationByKubelet", "Evicted").disruption, Disruption::kPressure);
  EXPECT_EQ(disrupted("TerminationByKubelet", "Terminated").disruption, Disruption::kPreempted);
  EXPECT_EQ(disrupted("TerminationByKubelet", "Preempting").disruption, Disruption::kPreempted);
}

TEST(Disruptions, APodThatUsedMoreThanItsLimitsFailedByItself) {
  const PodView pod = view(R"({"phase":"Failed","reason":"Evicted",
    "message":"Usage of EmptyDir volume \"shm\" exceeds the limit \"1Gi\". "})");
  EXPECT_EQ(pod.disruption, Disruption::kNone);
  EXPECT_EQ(pod.end_reason, "Evicted");
}

TEST(Disruptions, OneThatWasTakenBackIsNone) {
  EXPECT_EQ(view(R"({"phase":"Running","conditions":[{"type":"DisruptionTarget","status":"False",
    "reason":"EvictionByEvictionAPI"}]})")
                .disruption,
            Disruption::kNone);
}

Json pod_of_others(const std::string& spec, const std::string& phase = "Running") {
  return {{"metadata", {{"namespace", "web"}, {"name", "nginx"}}},
          {"spec", Json::parse(spec)},
          {"status", {{"phase", phase}}}};
}

TEST(OtherPods, CountAsTheSchedulerCountsThem) {
  const auto pod = view_of_other_pod(pod_of_others(R"({"nodeName":"kn1",
    "overhead":{"cpu":"250m","memory":"1Mi"},
    "initContainers":[
      {"name":"mesh","restartPolicy":"Always","resources":{"requests":{"cpu":"100m"}}},
      {"name":"load","resources":{"requests":{"cpu":"2","memory":"4Gi"}}}],
    "containers":[
      {"name":"a","resources":{"requests":{"cpu":"500m","memory":"1Gi","nvidia.com/gpu":"1"}}},
      {"name":"b","resources":{"requests":{"cpu":"1","memory":"1Gi","nvidia.com/gpu":"1"}}}]})"),
                                     "nvidia.com/gpu");
  ASSERT_TRUE(pod.has_value());
  EXPECT_EQ(pod->key, "web/nginx");
  EXPECT_EQ(pod->milli_cpus, 2350U);
  EXPECT_EQ(pod->memory, base::kGiB * 4 + base::kMiB);
  EXPECT_EQ(pod->counted_gpus, 2U);
}

TEST(OtherPods, WhatIsAskedForThePodStandsForItsContainers) {
  const auto pod = view_of_other_pod(pod_of_others(R"({"nodeName":"kn1",
    "resources":{"requests":{"cpu":"4"}},
    "containers":[{"name":"a","resources":{"requests":{"cpu":"1","memory":"1Gi"}}}]})"),
                                     "nvidia.com/gpu");
  EXPECT_EQ(pod->milli_cpus, 4000U);
  EXPECT_EQ(pod->memory, base::kGiB);
}

TEST(OtherPods, AContainerThatShrinksHoldsWhatItHas) {
  Json pod = pod_of_others(R"({"nodeName":"kn1",
    "containers":[{"name":"a","resources":{"requests":{"cpu":"1"}}}]})");
  pod["status"]["containerStatuses"] =
      Json::parse(R"([{"name":"a","allocatedResources":{"cpu":"3"}}])");
  EXPECT_EQ(view_of_other_pod(pod, "nvidia.com/gpu")->milli_cpus, 3000U);
}

TEST(OtherPods, ThatAreOverOrNotBoundUseNoNode) {
  EXPECT_FALSE(view_of_other_pod(pod_of_others("{}", "Pending"), "r").has_value());
  EXPECT_FALSE(view_of_other_pod(pod_of_others(R"({"nodeName":"n"})", "Failed"), "r").has_value());
  EXPECT_FALSE(
      view_of_other_pod(pod_of_others(R"({"nodeName":"n"})", "Succeeded"), "r").has_value());
  EXPECT_TRUE(view_of_other_pod(pod_of_others(R"({"nodeName":"n"})", "Pending"), "r").has_value());
}

TEST(OtherPods, AbsurdRequestsStayWithinBounds) {
  const auto pod = view_of_other_pod(pod_of_others(R"({"nodeName":"n","containers":[
    {"resources":{"requests":{"cpu":"9E","memory":"7Ei","r":"-3"}}},
    {"resources":{"requests":{"cpu":"x","memory":"7Ei"}}}]})"),
                                     "r");
  EXPECT_EQ(pod->memory.value(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(pod->counted_gpus, 0U);
}

TEST(PodViews, AreTheSameWithoutWhatTheyDoNotRead) {
  Json pod = a_pod(R"({"phase":"Running","podIP":"1.2.3.4","podIPs":[{"ip":"1.2.3.4"}],
    "hostIPs":[{"ip":"5.6.7.8"}],"resourceClaimStatuses":[{"name":"gpus"}],
    "containerStatuses":[{"name":"main","allocatedResources":{"cpu":"3"},"volumeMounts":[{}],
      "state":{"running":{"startedAt":"2026-11-22T08:36:36Z"}}}]})");
  pod["spec"] = Json::parse(R"({"nodeName":"n","schedulingGates":[{"name":"gpu-platform/gang"}],
    "affinity":{"nodeAffinity":{}},"imagePullSecrets":[{"name":"s"}],"volumes":[{"name":"v"}],
    "resourceClaims":[{"name":"gpus"}],"securityContext":{"runAsUser":1},"tolerations":[{}],
    "containers":[{"name":"main","args":["a"],"command":["c"],"env":[{"name":"E","value":"V"}],
      "ports":[{"containerPort":1}],"volumeMounts":[{}],"securityContext":{"x":{}},
      "resources":{"requests":{"cpu":"1","memory":"2Gi"},"limits":{"nvidia.com/gpu":"2"}}}]})");
  const Json read = kubernetes::read_json(pod.dump(), fields_of_pods());
  EXPECT_FALSE(read["spec"]["containers"][0].contains("env"));
  EXPECT_EQ(view_of_pod(read, "lab"), view_of_pod(pod, "lab"));
  const auto asked = view_of_other_pod(pod, "nvidia.com/gpu");
  EXPECT_EQ(view_of_other_pod(read, "nvidia.com/gpu"), asked);
  EXPECT_EQ(asked->counted_gpus, 2U);
}

TEST(PodViews, NoJsonEndsTheProgram) {
  base::Prng prng(1);
  Json whole = a_pod(R"({"phase":"Failed","reason":"Evicted","message":"m","podIP":"1.2.3.4",
    "conditions":[{"type":"DisruptionTarget","status":"True","reason":"TerminationByKubelet"},
                  {"type":"PodScheduled","status":"False","reason":"r"}],
    "initContainerStatuses":[{"name":"i","state":{"waiting":{"reason":"ErrImagePull"}}}],
    "containerStatuses":[{"name":"main","allocatedResources":{"cpu":"1"},"state":{"terminated":
      {"exitCode":0,"startedAt":"2026-11-22T08:36:36Z"}}}]})");
  whole["spec"] = Json::parse(R"({"nodeName":"n","schedulingGates":[{"name":"g"}],
    "overhead":{"cpu":"1"},"initContainers":[{"name":"i","restartPolicy":"Always"}],
    "containers":[{"name":"main","resources":{"requests":{"cpu":"1","memory":2}}}]})");
  int seen = 0;
  for (int i = 0; i < 4'000; ++i) {
    Json pod = whole;
    for (std::uint64_t n = prng.below(4); n > 0; --n) spoil(pod, prng);
    if (view_of_pod(pod, "lab").has_value()) ++seen;
    if (view_of_other_pod(pod, "nvidia.com/gpu").has_value()) ++seen;
    const std::string text = pod.dump(-1, ' ', false, Json::error_handler_t::replace);
    const Json all = kubernetes::read_json(text);
    const Json read = kubernetes::read_json(text, fields_of_pods());
    EXPECT_EQ(view_of_pod(read, "lab"), view_of_pod(all, "lab")) << text;
    EXPECT_EQ(view_of_other_pod(read, "nvidia.com/gpu"), view_of_other_pod(all, "nvidia.com/gpu"))
        << text;
  }
  EXPECT_GT(seen, 1'000);
}

}  // namespace
}  // namespace gpu_platform::execution
