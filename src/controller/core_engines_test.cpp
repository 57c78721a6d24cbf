// Nodes of two engines: where jobs may go, and what a cluster says of its nodes and does to jobs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {
namespace {

using base::ErrorCode;
using model::EndReason;
using model::EngineKind;
using model::EngineSet;
using model::JobState;
using model::NodeState;
using model::TaintEffect;
using testing::attempt;
using ::testing::HasSubstr;
using testing::kNoon;
using ::testing::Not;

model::NodeInfo cluster_node(std::string name, std::uint32_t gpus) {
  model::NodeInfo info = testing::node_info(std::move(name), gpus);
  info.engine = EngineKind::kKubernetes;
  return info;
}

model::JobSpec with_image(std::uint32_t gpus) {
  model::JobSpec spec = testing::spec(gpus);
  spec.image = "registry.example.org/lab/train:1";
  return spec;
}

// The cluster's taint of the node, or of one of its GPUs; without an effect it is lifted.
execution::TaintObserved cluster_says(std::string node, std::string gpu = {},
                                      std::optional<TaintEffect> effect = {},
                                      std::string text = {}) {
  return {std::move(node), std::move(gpu), model::TaintSource::kCluster, effect, std::move(text)};
}

class EnginesTest : public ::testing::Test {
 protected:
  EnginesTest() {
    policy_.has_containers = true;
    policy_.set_engine(model::EngineKind::kKubernetes, true);
    apply_policy();
    see(execution::NodeObserved{testing::node_info("host", 2)});
    see(execution::NodeObserved{cluster_node("k1", 4)});
    see(execution::NodeObserved{cluster_node("k2", 4)});
  }

  void apply_policy() { core_.apply_policy(policy_, "test", kNoon); }
  void see(execution::Observation observation) {
    core_.observe(observation, kNoon);
    core_.advance(kNoon);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
  }
  base::Result<model::CommandReply> command(const model::Command& command) {
    auto reply = core_.command(command, kNoon, store::Headroom::kAmple);
    core_.advance(kNoon);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
    return reply;
  }
  base::Result<model::CommandReply> submit(model::JobSpec spec) {
    return command(testing::submission(std::move(spec)));
  }
  std::uint64_t accepted(model::JobSpec spec) {
    const auto reply = submit(std::move(spec));
    EXPECT_TRUE(reply) << reply.error().message;
    return reply ? reply->job.value : 0;
  }
  base::Error refusal_of(model::JobSpec spec) {
    const auto reply = submit(std::move(spec));
    EXPECT_FALSE(reply);
    return reply ? base::Error() : reply.error();
  }
  base::Result<model::CommandReply> change_node(const std::string& name, model::GpuAction action) {
    model::ChangeGpus change;
    change.which.node = name;
    change.action = action;
    return command({testing::kRoot, std::move(change)});
  }
  const model::Job& job(std::uint64_t id) const { return *core_.state().jobs.find(id); }
  const model::Node& node(std::string_view name) const {
    return *core_.state().nodes.find(core_.state().node_ids.find(name)->second.value);
  }
  EngineSet engines_of(std::uint64_t id) const { return job(id).spec->request.engines; }
  // The start orders since the last call.
  std::vector<execution::StartOrder> starts() {
    std::vector<execution::StartOrder> orders;
    for (const Effect& effect : core_.take_batch().effects) {
      if (const auto* start = std::get_if<execution::StartOrder>(&effect)) {
        orders.push_back(*start);
      }
    }
    return orders;
  }

  model::Policy policy_;
  Core core_;
};

TEST_F(EnginesTest, AJobWithoutAnImageRunsAsProcessesAlone) {
  const std::uint64_t id = accepted(testing::spec(2));
  EXPECT_EQ(engines_of(id), model::kProcessesOnly);
  const auto orders = starts();
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(orders[0].nodes[0].node_name, "host");
  EXPECT_EQ(orders[0].nodes[0].engine, EngineKind::kProcess);
  const base::Error refusal = refusal_of(testing::spec(4));
  EXPECT_EQ(refusal.field, "gpus");
  EXPECT_THAT(refusal.message, HasSubstr("the largest node that it may use has 2 GPUs"));
}

// What a job is charged by is what its nodes are, not what most nodes are.
TEST_F(EnginesTest, AStartNamesTheCapacityClassOfItsNodes) {
  model::NodeInfo spot = testing::node_info("spot", 8);
  spot.capacity = model::CapacityClass::kSpot;
  model::NodeInfo reserved = testing::node_info("reserved", 8);
  reserved.capacity = model::CapacityClass::kReserved;
  see(execution::NodeObserved{spot});
  see(execution::NodeObserved{reserved});
  // What the start of such a job says.
  const auto class_of = [&](model::JobSpec spec) {
    spec.request.cpus = 1;
    spec.request.memory = base::kGiB;
    core_.take_batch();
    accepted(std::move(spec));
    std::string told = "no start";
    for (const auto& record : core_.take_batch().events) {
      const auto* start = std::get_if<model::StartRequested>(&record.event);
      if (start != nullptr) told = start->price_class;
    }
    return told;
  };
  EXPECT_EQ(class_of(testing::spec(2)), "on_demand");
  model::JobSpec on_spot = testing::spec(1);
  on_spot.request.capacity = model::CapacityRequest::kSpot;
  EXPECT_EQ(class_of(on_spot), "spot");
  model::JobSpec large = testing::spec(8);
  EXPECT_EQ(class_of(large), "reserved");
  model::JobSpec gang = testing::spec(0);
  gang.request.nodes = 3;
  EXPECT_EQ(class_of(gang), "on_demand,spot,reserved");
}

TEST_F(EnginesTest, AJobThatStandsForAWorkloadRunsInItsClusterAndItsPodsSayWhatItNeeds) {
  model::JobSpec spec = testing::spec(2);
  spec.image.clear();
  spec.workload = "ml/Job/train/uid";
  spec.workload_pods = 2;
  const std::uint64_t id = accepted(spec);
  EXPECT_EQ(engines_of(id), EngineSet::of(EngineKind::kKubernetes));
  spec.request.gpus = 4;
  accepted(spec);
  const std::uint64_t waiting = accepted(spec);
  ASSERT_EQ(job(waiting).state, JobState::kQueued);
  model::UpdateJob update;
  update.job = model::JobId(waiting);
  update.to.set(&model::ResourceRequest::gpus, 1);
  const auto refused = command({testing::kRoot, update});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "gpus");
  EXPECT_THAT(refused.error().message, HasSubstr("ml/Job/train/uid"));
  (void)core_.take_batch();
  model::ActOnJob cancel;
  cancel.job = model::JobId(waiting);
  cancel.detail = "its workload was deleted";
  ASSERT_TRUE(command({testing::kRoot, cancel}));
  const Batch batch = core_.take_batch();
  ASSERT_EQ(batch.ended_jobs.size(), 1U);
  EXPECT_EQ(batch.ended_jobs[0].state, JobState::kCancelled);
  EXPECT_EQ(batch.ended_jobs[0].detail, "its workload was deleted");
}

TEST_F(EnginesTest, AJobWithAnImageGoesWhereThereIsRoomForIt) {
  EXPECT_EQ(engines_of(accepted(with_image(2))), model::kAnyEngine);
  const std::uint64_t large = accepted(with_image(4));
  EXPECT_EQ(job(large).state, JobState::kStarting);
  const auto orders = starts();
  ASSERT_EQ(orders.size(), 2U);
  EXPECT_EQ(orders[1].nodes[0].engine, EngineKind::kKubernetes);
}

TEST_F(EnginesTest, AGangWithAnImageIsForKubernetes) {
  model::JobSpec gang = with_image(2);
  gang.request.nodes = 2;
  const std::uint64_t id = accepted(gang);
  EXPECT_EQ(engines_of(id), EngineSet::of(EngineKind::kKubernetes));
  const auto orders = starts();
  ASSERT_EQ(orders.size(), 1U);
  ASSERT_EQ(orders[0].nodes.size(), 2U);
  EXPECT_EQ(orders[0].nodes[0].node_name, "k1");
  EXPECT_EQ(orders[0].nodes[1].node_name, "k2");
  gang.request.nodes = 3;
  EXPECT_EQ(refusal_of(gang).field, "nodes") << "the host is not a third node of it";
}

TEST_F(EnginesTest, WithMountsItIsForThisHost) {
  model::JobSpec spec = with_image(1);
  spec.mounts = {"/data:/data"};
  EXPECT_EQ(engines_of(accepted(spec)), model::kProcessesOnly);
}

TEST_F(EnginesTest, OnlyAnnotationsThatTheSiteNamesReachAPod) {
  model::JobSpec spec = with_image(1);
  spec.annotations = {{"gpu-memory", "8192"},
                      {"nvidia.com/container.main.gpu-memory.limit", "8Gi"}};
  EXPECT_EQ(engines_of(accepted(spec)), model::kProcessesOnly) << "this host has rules of its own";
  policy_.set_engine(model::EngineKind::kProcess, false);
  policy_.pod_annotations = {"nvidia.com/container.main.gpu-memory.*", "gpu-fraction"};
  apply_policy();
  const base::Error refusal = refusal_of(spec);
  EXPECT_EQ(refusal.code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(refusal.field, "annotations");
  EXPECT_THAT(refusal.message, HasSubstr("'gpu-memory'"));
  EXPECT_THAT(refusal.message, HasSubstr("engines.kubernetes.annotations"));
  spec.annotations.erase(spec.annotations.begin());
  const std::uint64_t id = accepted(spec);
  EXPECT_EQ(engines_of(id), EngineSet::of(EngineKind::kKubernetes));
  EXPECT_EQ(job(id).spec->annotations, spec.annotations);
}

TEST_F(EnginesTest, NoSiteNamesAnnotationsThatSteerACluster) {
  policy_.set_engine(model::EngineKind::kProcess, false);
  policy_.pod_annotations = {"gpu-platform/*", "cdi.k8s.io/*", "nvidia.com/*"};
  apply_policy();
  for (const char* const key :
       {"gpu-platform/job", "cdi.k8s.io/gpus", "nvidia.com/container.main.gpus.devices"}) {
    model::JobSpec spec = with_image(1);
    spec.annotations = {{key, "1"}};
    EXPECT_EQ(refusal_of(spec).field, "annotations") << key;
  }
}

TEST_F(EnginesTest, WithoutANetworkItIsForThisHost) {
  model::Command offline = testing::submission(with_image(1));
  std::get<model::SubmitJob>(offline.body).refuses_network = true;
  const auto reply = command(offline);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(engines_of(reply->job.value), model::kProcessesOnly);
  policy_.set_engine(model::EngineKind::kProcess, false);
  apply_policy();
  const auto refused = command(offline);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "container_network");
  EXPECT_THAT(refused.error().message, HasSubstr("NetworkPolicy"));
  EXPECT_TRUE(submit(with_image(1))) << "a job that does not ask for it gets the cluster's network";
}

TEST_F(EnginesTest, ARefusalSaysWhatKeepsTheJobFromEachEngine) {
  model::JobSpec spec = with_image(1);
  spec.request.nodes = 2;
  spec.mounts = {"/data:/data"};
  const base::Error both = refusal_of(spec);
  EXPECT_EQ(both.code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(both.field, "image");
  EXPECT_THAT(both.message, HasSubstr("on this host, image: "));
  EXPECT_THAT(both.message, HasSubstr("in Kubernetes, mounts: "));
  policy_.set_engine(model::EngineKind::kKubernetes, false);
  apply_policy();
  EXPECT_THAT(refusal_of(spec).message, Not(HasSubstr("Kubernetes"))) << "it is not there";
  policy_.set_engine(model::EngineKind::kKubernetes, true);
  policy_.set_engine(model::EngineKind::kProcess, false);
  apply_policy();
  EXPECT_EQ(refusal_of(spec).field, "mounts");
  EXPECT_EQ(refusal_of(testing::spec(1)).field, "image") << "a pod needs one";
}

TEST_F(EnginesTest, WithoutAnyContainersAnImageIsRefused) {
  policy_.has_containers = false;
  policy_.set_engine(model::EngineKind::kKubernetes, false);
  apply_policy();
  const base::Error refusal = refusal_of(with_image(1));
  EXPECT_EQ(refusal.field, "image");
  EXPECT_THAT(refusal.message, HasSubstr("execution.containers"));
}

TEST_F(EnginesTest, AChangedJobKeepsItsEngines) {
  model::JobSpec spec = with_image(1);
  spec.mounts = {"/data:/data"};
  model::SubmitJob submission;
  submission.spec = spec;
  submission.hold = true;
  const auto held = command({testing::kOwner, std::move(submission)});
  ASSERT_TRUE(held) << held.error().message;
  model::UpdateJob update;
  update.job = held->job;
  update.to.set(&model::ResourceRequest::gpus, 2U);
  ASSERT_TRUE(command({testing::kOwner, update}));
  EXPECT_EQ(engines_of(held->job.value), model::kProcessesOnly);
  update.to.set(&model::ResourceRequest::nodes, 2U);
  const auto gang = command({testing::kOwner, update});
  ASSERT_FALSE(gang);
  EXPECT_EQ(gang.error().field, "image") << "its engine cannot run that";
}

TEST_F(EnginesTest, WhatOthersUseIsNotGivenOut) {
  model::NodeInfo info = cluster_node("k1", 4);
  info.others_cpus = 60;
  const model::EventSeq before = core_.state().seq;
  see(execution::NodeObserved{info});
  EXPECT_EQ(core_.state().seq.value, before.value + 1);
  core_.take_batch();
  model::JobSpec spec = with_image(3);
  spec.request.cpus = 8;
  const std::uint64_t first = accepted(spec);
  EXPECT_EQ(starts().at(0).nodes[0].node_name, "k2");
  const std::uint64_t second = accepted(spec);
  EXPECT_EQ(job(second).state, JobState::kQueued);
  info.others_cpus = 0;
  see(execution::NodeObserved{info});
  EXPECT_EQ(job(second).state, JobState::kStarting);
  EXPECT_EQ(job(first).state, JobState::kStarting);
}

TEST_F(EnginesTest, WhatOthersUseIsWrittenWithoutTheWholeNode) {
  core_.take_batch();
  model::NodeInfo info = cluster_node("k1", 4);
  info.others_memory = base::kGiB;
  see(execution::NodeObserved{info});
  const Batch batch = core_.take_batch();
  ASSERT_EQ(batch.events.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<model::NodeOthersChanged>(batch.events[0].event));
}

TEST_F(EnginesTest, AJobThatOnlyOthersKeepOutCouldRun) {
  for (const char* const name : {"k1", "k2"}) {
    model::NodeInfo info = cluster_node(name, 4);
    info.others_cpus = 64;
    info.others_memory = base::kGiB * 512;
    see(execution::NodeObserved{info});
  }
  model::JobSpec gang = with_image(4);
  gang.request.nodes = 2;
  EXPECT_EQ(job(accepted(gang)).state, JobState::kQueued);
}

TEST_F(EnginesTest, ACordonedNodeTakesNoNewWorkAndKeepsWhatRuns) {
  const std::uint64_t id = accepted(with_image(4));
  see(execution::Started{attempt(id), 0, kNoon});
  see(cluster_says("k1", {}, TaintEffect::kNoNewWork, "cordoned"));
  EXPECT_EQ(job(id).state, JobState::kRunning);
  EXPECT_EQ(node("k1").state, NodeState::kDraining);
  see(cluster_says("k2", {}, TaintEffect::kOut, "being deleted"));
  EXPECT_EQ(node("k2").state, NodeState::kOffline);
  const std::uint64_t next = accepted(with_image(4));
  EXPECT_EQ(job(next).state, JobState::kQueued);
  const model::EventSeq before = core_.state().seq;
  see(cluster_says("k2", {}, TaintEffect::kOut, "being deleted"));
  EXPECT_EQ(core_.state().seq, before) << "told twice, written once";
  see(cluster_says("k2"));
  EXPECT_EQ(job(next).state, JobState::kStarting);
}

TEST_F(EnginesTest, WhatAnOperatorDecidedIsNotUndoneByTheCluster) {
  ASSERT_TRUE(change_node("k1", model::GpuAction::kDrain));
  see(cluster_says("k1", {}, TaintEffect::kNoNewWork, "cordoned"));
  see(cluster_says("k1"));
  EXPECT_EQ(node("k1").state, NodeState::kDraining);
  EXPECT_EQ(node("k1").cause, "drained");
}

TEST_F(EnginesTest, WhatTheClusterDecidedIsNotUndoneByAnOperator) {
  see(cluster_says("k1", {}, TaintEffect::kNoNewWork, "cordoned"));
  const auto refused = change_node("k1", model::GpuAction::kBringOnline);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("cordoned"));
  ASSERT_TRUE(change_node("k1", model::GpuAction::kTakeOffline));
  EXPECT_EQ(node("k1").state, NodeState::kOffline);
  ASSERT_TRUE(change_node("k1", model::GpuAction::kBringOnline)) << "takes back the operator's";
  EXPECT_EQ(node("k1").state, NodeState::kDraining);
}

TEST_F(EnginesTest, AGpuThatIsNotOursTakesNoWorkWhateverThePolicySays) {
  policy_.unmanaged_processes = model::UnmanagedProcessPolicy::kIgnore;
  apply_policy();
  see(cluster_says("k1", "k1-2", TaintEffect::kAvoided, "a pod of others has it"));
  see(cluster_says("k2", "k2-0", TaintEffect::kAvoided, "a pod of others has it"));
  EXPECT_EQ(model::text_of_avoided(node("k1").gpus[2].taints),
            "not available to the platform: a pod of others has it");
  const std::uint64_t id = accepted(with_image(4));
  EXPECT_EQ(job(id).state, JobState::kQueued);
  see(cluster_says("k1", "k1-2"));
  EXPECT_EQ(job(id).state, JobState::kStarting);
  const model::EventSeq before = core_.state().seq;
  see(cluster_says("k1", "k1-9", TaintEffect::kAvoided, "no such GPU"));
  see(cluster_says("k9", "k1-2", TaintEffect::kAvoided, "no such node"));
  see(cluster_says("k1", "k1-2"));
  EXPECT_EQ(core_.state().seq, before);
}

TEST_F(EnginesTest, ANameBelongsToOneEngineWhileJobsAreThere) {
  accepted(with_image(4));
  const model::EventSeq before = core_.state().seq;
  see(execution::NodeObserved{testing::node_info("k1", 4)});
  EXPECT_EQ(core_.state().seq, before);
  EXPECT_EQ(node("k1").engine, EngineKind::kKubernetes);
  see(execution::NodeObserved{testing::node_info("k2", 4)});
  EXPECT_EQ(node("k2").engine, EngineKind::kProcess) << "nothing of it was held";
}

// A pod that had no node yet may come to the new machine, so nothing is free before the engine says
// so.
TEST_F(EnginesTest, WhatRanOnANodeOfAClusterThatWasReplacedIsStoppedAndHeldUntilItIsGone) {
  const std::uint64_t id = accepted(with_image(4));
  core_.take_batch();
  model::NodeInfo another = cluster_node("k1", 4);
  another.boot_id = "another machine";
  see(execution::NodeObserved{another});
  EXPECT_EQ(job(id).attempts[0].state, model::AttemptState::kCleaning);
  EXPECT_EQ(job(id).attempts[0].exit.lost, model::Lost::kNodeLost);
  bool is_stopped = false;
  for (const Effect& effect : core_.take_batch().effects) {
    const auto* stop = std::get_if<execution::StopOrder>(&effect);
    is_stopped = is_stopped || (stop != nullptr && stop->attempt == attempt(id, 1));
  }
  EXPECT_TRUE(is_stopped);
  see(execution::Cleaned{attempt(id, 1)});
  EXPECT_EQ(job(id).attempts[0].state, model::AttemptState::kReleased);
}

class EvictionTest : public EnginesTest {
 protected:
  void evict(std::uint64_t id, std::uint32_t number, std::optional<std::uint8_t> code) {
    execution::Ended ended;
    ended.attempt = attempt(id, number);
    ended.at = kNoon;
    ended.exit.code = code;
    ended.reason = EndReason::kPreempted;
    see(ended);
  }
};

TEST_F(EvictionTest, AnEvictedJobGoesBackToTheQueueAndLosesNothing) {
  const std::uint64_t id = accepted(with_image(4));
  see(execution::Started{attempt(id), 0, kNoon});
  evict(id, 1, std::uint8_t{143});
  EXPECT_EQ(job(id).state, JobState::kPreempted);
  see(execution::Cleaned{attempt(id)});
  EXPECT_EQ(job(id).state, JobState::kStarting);
  EXPECT_EQ(job(id).attempts.size(), 2U);
  EXPECT_EQ(job(id).failures, 0U);
  EXPECT_EQ(job(id).losses, 0U);
  EXPECT_EQ(job(id).preemptions, 0U) << "it made room for no job of ours";
  EXPECT_EQ(job(id).attempts[0].reason, EndReason::kPreempted);
}

TEST_F(EvictionTest, ItCostsNoRetryHoweverOftenItHappens) {
  policy_.max_loss_retries = 0;
  apply_policy();
  const std::uint64_t id = accepted(with_image(4));
  for (std::uint32_t number = 1; number <= 5; ++number) {
    see(execution::Started{attempt(id, number), 0, kNoon});
    evict(id, number, std::uint8_t{143});
    see(execution::Cleaned{attempt(id, number)});
    ASSERT_EQ(job(id).state, JobState::kStarting) << number;
  }
}

TEST_F(EvictionTest, AJobThatNeverStartedIsNotSaidToHaveRun) {
  const std::uint64_t id = accepted(with_image(4));
  evict(id, 1, std::nullopt);
  EXPECT_EQ(job(id).state, JobState::kPreempted);
  EXPECT_FALSE(job(id).attempts[0].started_at.is_set());
}

TEST_F(EvictionTest, AJobWhoseWorkloadWasDeletedIsCancelledByNobodyAndDoesNotBeginAnew) {
  const std::uint64_t id = accepted(with_image(4));
  see(execution::Started{attempt(id), 0, kNoon});
  execution::Ended ended;
  ended.attempt = attempt(id);
  ended.at = kNoon + base::minutes(5);
  ended.exit.code = std::uint8_t{143};
  ended.reason = EndReason::kCancelledBy;
  ended.detail = "its workload was deleted";
  see(ended);
  EXPECT_EQ(job(id).state, JobState::kCancelled);
  EXPECT_EQ(job(id).reason, EndReason::kCancelledBy);
  EXPECT_EQ(job(id).by, "");
  EXPECT_EQ(job(id).detail, "its workload was deleted");
  EXPECT_EQ(job(id).ended_at, kNoon + base::minutes(5));
  EXPECT_EQ(job(id).attempts.size(), 1U);
  EXPECT_EQ(job(id).attempts[0].exit.code, 143);
}

TEST_F(EvictionTest, ACancelledJobStaysCancelled) {
  const std::uint64_t id = accepted(with_image(4));
  see(execution::Started{attempt(id), 0, kNoon});
  ASSERT_TRUE(command(testing::stop(id)));
  evict(id, 1, std::uint8_t{143});
  EXPECT_EQ(job(id).state, JobState::kCancelled);
}

TEST_F(EvictionTest, ALostNodeCountsAsALoss) {
  const std::uint64_t id = accepted(with_image(4));
  see(execution::Started{attempt(id), 0, kNoon});
  execution::Ended ended;
  ended.attempt = attempt(id);
  ended.at = kNoon;
  ended.exit.lost = model::Lost::kNodeLost;
  ended.reason = EndReason::kNodeLost;
  see(ended);
  EXPECT_EQ(job(id).state, JobState::kPending);
  EXPECT_EQ(job(id).losses, 1U);
}

}  // namespace
}  // namespace gpu_platform::controller
