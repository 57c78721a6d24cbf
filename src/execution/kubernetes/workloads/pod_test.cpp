#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/prng.h"
#include "execution/kubernetes/cluster/cluster_fixture.h"
#include "execution/kubernetes/workloads/end.h"
#include "execution/kubernetes/workloads/owner.h"
#include "execution/kubernetes/workloads/pod.h"
#include "execution/kubernetes/workloads/requests.h"
#include "execution/kubernetes/workloads/spec.h"
#include "execution/kubernetes/workloads/workload_fixture.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kGpu = "nvidia.com/gpu";

WorkloadPod seen_pod(const Json& pod) {
  auto view = view_of_workload_pod(pod, kGpu);
  EXPECT_TRUE(view.has_value()) << pod.dump(2);
  return view.value_or(WorkloadPod());
}

TEST(WorkloadPodView, HasWhatThePodAsksForAndWhoMadeIt) {
  const WorkloadPod pod = seen_pod(their_pod());
  EXPECT_EQ(pod.workload.key(), "ml/Job/train/uid-train");
  EXPECT_EQ(workload_of_key(pod.workload.key()), pod.workload);
  EXPECT_EQ(pod.owner_api, "batch/v1");
  EXPECT_EQ(pod.gpus, 1U);
  EXPECT_EQ(pod.milli_cpus, 2000U);
  EXPECT_EQ(pod.memory, base::Bytes(std::int64_t{4} << 30));
  EXPECT_THAT(pod.command, ElementsAre("python", "train.py"));
  EXPECT_TRUE(pod.foreign_gates.empty());
}

TEST(WorkloadPodView, IsNothingWithoutOurGateAndWhenThePodIsOverOrGoes) {
  Json pod = their_pod();
  pod["spec"]["schedulingGates"] = Json::array({{{"name", "example.org/other"}}});
  EXPECT_FALSE(view_of_workload_pod(pod, kGpu));
  pod = their_pod();
  pod["metadata"]["deletionTimestamp"] = "2026-11-25T09:00:00Z";
  EXPECT_FALSE(view_of_workload_pod(pod, kGpu));
  pod = their_pod();
  pod["status"]["phase"] = "Failed";
  EXPECT_FALSE(view_of_workload_pod(pod, kGpu));
}

TEST(WorkloadPodView, SaysWhatMayBeAGpuAndIsNotCounted) {
  const auto uncounted = [](const std::function<void(Json&)>& change) {
    Json pod = their_pod({.gpus = 0});
    change(pod);
    return seen_pod(pod).uncounted;
  };
  const auto ask_for = [](Json& container, const char* list, const std::string& name) {
    container["resources"][list][name] = "1";
  };
  for (const std::string name : {"nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared",
                                 "deviceclass.resource.kubernetes.io/gpu.nvidia.com"}) {
    for (const char* const list : {"limits", "requests"}) {
      EXPECT_THAT(uncounted([&](Json& pod) { ask_for(pod["spec"]["containers"][0], list, name); }),
                  HasSubstr(name));
      EXPECT_THAT(
          uncounted([&](Json& pod) { ask_for(pod["spec"]["initContainers"][0], list, name); }),
          HasSubstr(name));
    }
    EXPECT_THAT(uncounted([&](Json& pod) { ask_for(pod["spec"], "requests", name); }),
                HasSubstr(name));
  }
  const auto claims = [&](Json list, const char* gpus, int number = 0) {
    return uncounted([&](Json& pod) {
      pod["spec"]["resourceClaims"] = std::move(list);
      pod["metadata"]["annotations"]["gpu-platform/gpus"] = gpus;
      if (number > 0) pod["spec"]["containers"][0]["resources"]["limits"][kGpu] = number;
    });
  };
  const Json ours = {{"name", "a"}, {"resourceClaimName", "exact"}};
  const Json theirs = {{"name", "b"}, {"resourceClaimTemplateName", "theirs"}};
  EXPECT_EQ(claims(Json::array({ours}), "2"), "");
  EXPECT_NE(claims(Json::array({ours}), ""), "");
  EXPECT_NE(claims(Json::array({ours}), "0"), "");
  EXPECT_NE(claims(Json::array({ours}), "2", 8), "") << "the number would not be counted";
  EXPECT_NE(claims(Json::array({ours, ours}), "2"), "");
  EXPECT_NE(claims(Json::array({theirs}), "2"), "");
  EXPECT_EQ(uncounted([&](Json& pod) {
              ask_for(pod["spec"]["containers"][0], "limits", "rdma/shared");
              ask_for(pod["spec"]["initContainers"][0], "limits", kGpu);
            }),
            "");
}

TEST(WorkloadPodView, KnowsWhereOurGateStandsAmongOthers) {
  Json pod = their_pod();
  pod["spec"]["schedulingGates"] =
      Json::array({{{"name", "example.org/quota"}}, {{"name", "gpu-platform/admission"}}});
  const WorkloadPod view = seen_pod(pod);
  EXPECT_EQ(view.gate_at, 1U);
  EXPECT_THAT(view.foreign_gates, ElementsAre("example.org/quota"));
}

TEST(WorkloadPodView, GroupsByTheFirstLabelThatIsKnown) {
  Json pod = their_pod();
  pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] = "all";
  pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-uid"] = "uid-set";
  EXPECT_EQ(seen_pod(pod).workload.key(), "ml/JobSet/all/uid-set");
  pod["metadata"]["labels"].erase("jobset.sigs.k8s.io/jobset-uid");
  EXPECT_EQ(seen_pod(pod).workload.key(), "ml/JobSet/all/") << "not the uid of one of its Jobs";
  pod["metadata"]["labels"]["gpu-platform/group"] = "pair";
  EXPECT_EQ(seen_pod(pod).workload.kind, "group");
  pod = their_pod({.owner_kind = "PyTorchJob",
                   .owner_name = "dist",
                   .owner_uid = "uid-dist",
                   .owner_api = "kubeflow.org/v1"});
  pod["metadata"]["labels"]["training.kubeflow.org/job-name"] = "dist";
  const WorkloadPod torch = seen_pod(pod);
  EXPECT_EQ(torch.workload.key(), "ml/PyTorchJob/dist/uid-dist");
  EXPECT_EQ(owner_path(torch.workload, torch.owner_api),
            "/apis/kubeflow.org/v1/namespaces/ml/pytorchjobs/dist");
  EXPECT_EQ(seen_pod(their_pod({.owner_kind = ""})).workload.key(), "ml/Pod/train-0/uid-train-0");
}

TEST(WorkloadPodView, NoJsonEndsTheProgram) {
  base::Prng prng(5);
  int accepted = 0;
  for (int i = 0; i < 2000; ++i) {
    Json pod = their_pod();
    for (std::uint64_t n = 1 + prng.below(3); n > 0; --n) spoil(pod, prng);
    if (const auto view = view_of_workload_pod(pod, kGpu)) {
      ++accepted;
      EXPECT_EQ(workload_of_key(view->workload.key()), view->workload) << pod.dump();
      (void)spec_of_workload(
          {*view}, {}, {{"alpha", {{"pool", "a"}}, 8, 64, base::Bytes(std::int64_t{1} << 40)}});
      (void)facts_of_owner(pod, view->workload);
    }
  }
  EXPECT_GT(accepted, 100);
}

TEST(WorkloadOwner, SaysHowManyPodsThereWillBe) {
  const WorkloadRef job{"ml", "Job", "train", "u"};
  Json owner = {{"metadata", {{"uid", "u"}}}, {"spec", {{"parallelism", 4}, {"completions", 6}}}};
  EXPECT_EQ(facts_of_owner(owner, job).pods, 4U);
  owner["status"]["succeeded"] = 5;
  EXPECT_EQ(facts_of_owner(owner, job).pods, 1U);
  owner["status"]["conditions"] = Json::array({{{"type", "Complete"}, {"status", "True"}}});
  EXPECT_TRUE(facts_of_owner(owner, job).is_finished);
  owner["metadata"]["uid"] = "another";
  EXPECT_FALSE(facts_of_owner(owner, job).is_there);
  const Json roles = {{"Master", {{"replicas", 1}}}, {"Worker", {{"replicas", 3}}}};
  const Json torch = {{"metadata", {{"uid", "u"}}}, {"spec", {{"pytorchReplicaSpecs", roles}}}};
  EXPECT_EQ(facts_of_owner(torch, {"ml", "PyTorchJob", "d", "u"}).pods, 4U);
  const Json jobs = Json::array(
      {{{"replicas", 2}, {"template", {{"spec", {{"parallelism", 4}, {"completions", 4}}}}}},
       {{"template", Json::object()}}});
  const Json set = {{"metadata", {{"uid", "u"}}}, {"spec", {{"replicatedJobs", jobs}}}};
  EXPECT_EQ(facts_of_owner(set, {"ml", "JobSet", "s", "u"}).pods, 9U);
  const Json groups = Json::array({{{"replicas", 2}, {"numOfHosts", 2}}, {{"replicas", 1}}});
  const Json ray = {{"metadata", {{"uid", "u"}}}, {"spec", {{"workerGroupSpecs", groups}}}};
  EXPECT_EQ(facts_of_owner(ray, {"ml", "RayCluster", "r", "u"}).pods, 6U);
}

TEST(WorkloadOwner, CountsTheWorkersOfARayClusterAsItsOperatorDoes) {
  const WorkloadRef cluster{"ml", "RayCluster", "r", "u"};
  const auto pods_with_group = [&](const Json& group) {
    const Json ray = {{"metadata", {{"uid", "u"}}},
                      {"spec", {{"workerGroupSpecs", Json::array({group})}}}};
    return facts_of_owner(ray, cluster).pods.value_or(0);
  };
  EXPECT_EQ(pods_with_group({{"replicas", 0}, {"minReplicas", 2}, {"maxReplicas", 4}}), 3U);
  EXPECT_EQ(pods_with_group({{"replicas", 9}, {"minReplicas", 2}, {"maxReplicas", 4}}), 5U);
  EXPECT_EQ(pods_with_group({{"replicas", 3}, {"numOfHosts", 0}}), 4U);
  EXPECT_EQ(pods_with_group({{"replicas", 3}, {"suspend", true}}), 1U);
}

Json owner_with(const Json& spec, const std::string& condition = "") {
  Json owner = {{"metadata", {{"uid", "u"}}}, {"spec", spec}};
  if (!condition.empty()) {
    owner["status"]["conditions"] = Json::array({{{"type", condition}, {"status", "True"}}});
  }
  return owner;
}

TEST(WorkloadOwner, SaysHowLongItMayTakeAndWhetherItIsSuspended) {
  const WorkloadRef job{"ml", "Job", "train", "u"};
  const WorkloadRef torch{"ml", "PyTorchJob", "d", "u"};
  const Json terms = {{"activeDeadlineSeconds", 60}, {"suspend", true}};
  for (const OwnerFacts& facts : {facts_of_owner(owner_with(terms), job),
                                  facts_of_owner(owner_with({{"runPolicy", terms}}), torch)}) {
    EXPECT_EQ(facts.time_limit, base::minutes(1));
    EXPECT_EQ(end_of_owner(facts), OwnerEnd::kSuspended);
  }
  EXPECT_EQ(end_of_owner(facts_of_owner(owner_with(Json::object()), job)), std::nullopt);
  EXPECT_EQ(end_of_owner(facts_of_owner(owner_with(terms, "Complete"), job)), OwnerEnd::kSucceeded);
  EXPECT_EQ(end_of_owner(facts_of_owner(owner_with(terms, "Failed"), torch)), OwnerEnd::kFailed);
}

TEST(WorkloadOwner, SaysWhyThePodsOfAJobSetCannotStartTogether) {
  const WorkloadRef ref{"ml", "JobSet", "s", "u"};
  const auto obstacle = [&](const Json& set) { return facts_of_owner(set, ref).obstacle; };
  EXPECT_EQ(obstacle(owner_with({{"startupPolicy", {{"startupPolicyOrder", "AnyOrder"}}}})), "");
  EXPECT_THAT(obstacle(owner_with({{"startupPolicy", {{"startupPolicyOrder", "InOrder"}}}})),
              HasSubstr("startupPolicy: InOrder"));
  const Json after = {{"name", "b"}, {"dependsOn", Json::array({{{"name", "a"}}})}};
  EXPECT_THAT(obstacle(owner_with({{"replicatedJobs", Json::array({after})}})),
              HasSubstr("dependsOn"));
  Json exclusive = owner_with(Json::object());
  Json& notes = exclusive["metadata"]["annotations"];
  notes["alpha.jobset.sigs.k8s.io/exclusive-topology"] = "rack";
  EXPECT_THAT(obstacle(exclusive), HasSubstr("exclusive-topology"));
  notes["alpha.jobset.sigs.k8s.io/node-selector"] = "true";
  EXPECT_EQ(obstacle(exclusive), "") << "all of its pods are made at once";
}

std::vector<WorkloadPod> pods_with(std::size_t count, std::uint32_t gpus) {
  std::vector<WorkloadPod> pods(count, seen_pod(their_pod()));
  for (WorkloadPod& pod : pods) pod.gpus = gpus;
  return pods;
}

const NodeSize kEightGpus = {"alpha", {{"pool", "a"}}, 8, 64, base::Bytes(std::int64_t{1} << 40)};

TEST(WorkloadSpec, PutsAsManyPodsOntoANodeAsFitAndDivideThem) {
  auto spec = spec_of_workload(pods_with(6, 2), {}, {kEightGpus});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->request.nodes, 2U);
  EXPECT_EQ(spec->request.gpus, 6U);
  EXPECT_EQ(spec->request.cpus, 6U);
  EXPECT_EQ(spec->workload, "ml/Job/train/uid-train");
  EXPECT_EQ(spec->workload_pods, 6U);
  spec = spec_of_workload(pods_with(7, 2), {}, {kEightGpus});
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->request.nodes, 7U);
}

TEST(WorkloadSpec, KnowsTheNodesThatANodeSelectorAdmits) {
  WorkloadPod pod = seen_pod(their_pod());
  EXPECT_EQ(nodes_for(pod, {kEightGpus}).size(), 1U);
  pod.node_selector = {{"pool", "a"}};
  EXPECT_EQ(nodes_for(pod, {kEightGpus}).size(), 1U);
  pod.node_selector = {{"pool", "b"}};
  EXPECT_TRUE(nodes_for(pod, {kEightGpus}).empty());
  const auto spec = spec_of_workload({pod}, {}, {});
  ASSERT_FALSE(spec);
  EXPECT_THAT(spec.error().message, HasSubstr("nodeSelector"));
}

TEST(WorkloadSpec, LeavesPodsWithoutGpusOfAWorkloadThatHasSomeToKubeScheduler) {
  std::vector<WorkloadPod> pods = pods_with(3, 8);
  pods[0].gpus = 0;
  const auto spec = spec_of_workload(pods, base::minutes(5), {kEightGpus});
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->workload_pods, 2U);
  EXPECT_EQ(spec->request.nodes, 2U);
  EXPECT_EQ(spec->time_limit, base::minutes(5));
}

TEST(WorkloadSpec, RefusesWhatThePlatformCannotPlaceWithTheReason) {
  std::vector<WorkloadPod> pods = pods_with(2, 2);
  pods[1].gpus = 4;
  auto spec = spec_of_workload(pods, {}, {kEightGpus});
  ASSERT_FALSE(spec);
  EXPECT_THAT(spec.error().message, HasSubstr("different numbers of GPUs"));
  spec = spec_of_workload(pods_with(1, 9), {}, {kEightGpus});
  ASSERT_FALSE(spec);
  EXPECT_THAT(spec.error().message, HasSubstr("can hold its pod"));
  pods = pods_with(1, 1);
  pods[0].priority = "urgent";
  spec = spec_of_workload(pods, {}, {kEightGpus});
  ASSERT_FALSE(spec);
  EXPECT_THAT(spec.error().message, HasSubstr("critical, high, medium and low"));
}

TEST(WorkloadRequests, OnePatchTakesTheGateChoosesTheNodeAndNamesTheAttempt) {
  WorkloadCall call;
  call.attempt = {model::JobId(7), 2};
  call.rank = 3;
  call.namespace_name = "ml";
  call.name = "train-0";
  call.uid = "uid-train-0";
  call.node = "alpha";
  call.is_counted = true;
  KubernetesSettings settings;
  settings.cluster = "test";
  const auto request = request_of(call, settings);
  Json pod = their_pod();
  pod["metadata"].erase("labels");
  const Json after = pod.patch(Json::parse(request.body));
  EXPECT_TRUE(after["spec"]["schedulingGates"].empty());
  EXPECT_EQ(after["spec"]["nodeSelector"]["kubernetes.io/hostname"], "alpha");
  const auto view = view_of_adopted_pod(after, "test");
  ASSERT_TRUE(view);
  EXPECT_EQ(view->attempt, call.attempt);
  EXPECT_EQ(view->rank, 3U);
  EXPECT_FALSE(view_of_pod(after, "test")) << "it is not one of the platform's own";
  pod["metadata"]["uid"] = "another";
  EXPECT_THROW((void)pod.patch(Json::parse(request.body)), Json::exception);
}

RankEnd end_with(PodPhase phase, std::int32_t code, bool is_deleted = false) {
  PodView pod;
  pod.phase = phase;
  pod.exit_code = code;
  pod.started_at = base::Instant(1'000);
  pod.finished_at = base::Instant(2'000);
  pod.end_reason = code == 0 ? "Completed" : "Error";
  pod.is_being_deleted = is_deleted;
  return {pod, false};
}

TEST(WorkloadEnd, IsThatOfThePodsThatEndedByThemselves) {
  const model::AttemptId id{model::JobId(1), 1};
  const RankEnd good = end_with(PodPhase::kSucceeded, 0);
  const RankEnd bad = end_with(PodPhase::kFailed, 3);
  const RankEnd cleaned_up = end_with(PodPhase::kFailed, 143, true);
  EXPECT_EQ(end_of_workload(id, std::vector{good, cleaned_up}, {}, {}).exit.code, 0);
  const Ended failed = end_of_workload(id, std::vector{good, bad, cleaned_up}, {}, {});
  EXPECT_EQ(failed.exit.code, 3);
  EXPECT_EQ(failed.reason, model::EndReason::kNone);
  EXPECT_EQ(end_of_workload(id, std::vector{cleaned_up}, {}, {}).reason,
            model::EndReason::kPreempted);
  RankEnd evicted = cleaned_up;
  evicted.pod->disruption = Disruption::kPreempted;
  EXPECT_EQ(end_of_workload(id, std::vector{good, evicted}, {}, {}).reason,
            model::EndReason::kPreempted);
}

TEST(WorkloadEnd, IsCancelledWhereTheWorkloadTookPodsWithItThatHadMoreToDo) {
  const model::AttemptId id{model::JobId(1), 1};
  const RankEnd good = end_with(PodPhase::kSucceeded, 0);
  const RankEnd bad = end_with(PodPhase::kFailed, 3);
  const RankEnd taken = end_with(PodPhase::kFailed, 143, true);
  const Ended ended = end_of_workload(id, std::vector{good, taken}, {}, OwnerEnd::kDeleted);
  EXPECT_EQ(ended.reason, model::EndReason::kCancelledBy);
  EXPECT_EQ(ended.exit.code, 143);
  EXPECT_EQ(ended.at, base::Instant(2'000));
  EXPECT_EQ(ended.detail, "its workload was deleted");
  // What had come to its end before does not change.
  EXPECT_EQ(end_of_workload(id, std::vector{good}, {}, OwnerEnd::kDeleted).reason,
            model::EndReason::kNone);
  EXPECT_EQ(end_of_workload(id, std::vector{bad, taken}, {}, OwnerEnd::kDeleted).exit.code, 3);
  const RankEnd told_to_end = end_with(PodPhase::kSucceeded, 0, true);
  EXPECT_EQ(end_of_workload(id, std::vector{told_to_end}, {}, OwnerEnd::kDeleted).reason,
            model::EndReason::kNone);
  const Ended paused = end_of_workload(id, std::vector{taken}, {}, OwnerEnd::kSuspended);
  EXPECT_EQ(paused.reason, model::EndReason::kCancelledBy);
  EXPECT_EQ(paused.detail, "its workload was suspended");
  EndCause ours;
  ours.stop = StopOrder{id, false, {}, model::EndReason::kTimeLimit};
  EXPECT_EQ(end_of_workload(id, std::vector{taken}, ours, OwnerEnd::kDeleted).reason,
            model::EndReason::kTimeLimit);
  RankEnd vanished = taken;
  vanished.pod->phase = PodPhase::kRunning;
  vanished.vanished = true;
  const Ended unseen = end_of_workload(id, std::vector{vanished}, {}, OwnerEnd::kDeleted);
  EXPECT_EQ(unseen.reason, model::EndReason::kCancelledBy);
  EXPECT_EQ(unseen.exit.lost, model::Lost::kUnknown) << "how its program ended is not known";
}

TEST(WorkloadEnd, IsThatOfTheOwnerWhereNoEndOfAPodWasSeen) {
  const model::AttemptId id{model::JobId(1), 1};
  const RankEnd unseen;
  const Ended done = end_of_workload(id, std::vector{unseen}, {}, OwnerEnd::kSucceeded);
  EXPECT_EQ(done.exit.code, 0);
  EXPECT_EQ(done.exit.lost, model::Lost::kNo);
  EXPECT_EQ(done.reason, model::EndReason::kNone);
  EXPECT_FALSE(end_of_workload(id, std::vector{unseen}, {}, OwnerEnd::kFailed).exit.code);
  const RankEnd bad = end_with(PodPhase::kFailed, 3);
  EXPECT_EQ(end_of_workload(id, std::vector{bad}, {}, OwnerEnd::kSucceeded).exit.code, 3);
}

TEST(WorkloadOwner, HasEndedWhenItIsGoneOrGoesOrHasFinished) {
  OwnerFacts facts;
  EXPECT_EQ(end_of_owner(facts), OwnerEnd::kDeleted);
  facts.is_there = true;
  EXPECT_EQ(end_of_owner(facts), std::nullopt);
  facts.is_finished = true;
  EXPECT_EQ(end_of_owner(facts), OwnerEnd::kFailed);
  facts.is_being_deleted = true;
  EXPECT_EQ(end_of_owner(facts), OwnerEnd::kDeleted);
}

}  // namespace
}  // namespace gpu_platform::execution
