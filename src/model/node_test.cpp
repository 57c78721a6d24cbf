#include "model/node.h"

#include <gtest/gtest.h>

namespace gpu_platform::model {
namespace {

NodeInfo node_with(std::vector<std::string> uuids) {
  NodeInfo info;
  info.name = "n1";
  info.cpus = 8;
  for (std::string& uuid : uuids) {
    GpuInfo gpu;
    gpu.uuid = std::move(uuid);
    info.gpus.push_back(std::move(gpu));
  }
  // Each pair has as many links as its place, so that a mix-up shows.
  const std::size_t pairs = info.gpus.size() * (info.gpus.size() - 1) / 2;
  for (std::uint32_t i = 0; i < pairs; ++i) {
    info.topology.links.push_back({LinkKind::kNvLink, i + 1, 1});
  }
  info.topology.numa_nodes = {{.id = 0, .socket = 0, .cpus = "0-7"}};
  return info;
}

TEST(Node, SaysOfItselfWhatItWasDescribedAs) {
  NodeInfo info = node_with({"a", "b", "c"});
  info.engine = EngineKind::kKubernetes;
  info.others_cpus = 3;
  info.others_memory = base::kGiB;
  info.capacity = CapacityClass::kSpot;
  Node node;
  node.name = "n1";
  describe(node, info);
  EXPECT_EQ(info_of(node), info);
}

TEST(Node, LosesNoGpuToANewOneHoweverManyItHas) {
  std::vector<std::string> uuids;
  Node node;
  for (int i = 0; i < 70; ++i) {
    uuids.push_back("gpu-" + std::to_string(i));
    describe(node, node_with(uuids));
  }
  ASSERT_EQ(node.gpus.size(), uuids.size());
  for (std::size_t i = 0; i < uuids.size(); ++i) EXPECT_EQ(node.gpus[i].info.uuid, uuids[i]);
  // The 64th place is free, and the 66th GPU is not taken for it.
  uuids.erase(uuids.begin() + 63);
  uuids.push_back("new");
  uuids.push_back("newer");
  describe(node, node_with(uuids), std::uint64_t{1} << 63);
  ASSERT_EQ(node.gpus.size(), 71U);
  EXPECT_EQ(node.gpus[63].info.uuid, "new");
  EXPECT_EQ(node.gpus[64].info.uuid, "gpu-64");
  EXPECT_EQ(node.gpus[70].info.uuid, "newer");
}

TEST(Node, ItsWorstTaintDecidesItsState) {
  Node node;
  const auto set = [&](TaintSource source, TaintEffect effect, std::string text) {
    set_taint(node.taints, {source, effect, std::move(text), {}, {}});
    settle(node);
  };
  const auto lift = [&](TaintSource source) {
    lift_taint(node.taints, source);
    settle(node);
  };
  set(TaintSource::kCluster, TaintEffect::kNoNewWork, "cordoned");
  EXPECT_EQ(node.state, NodeState::kDraining);
  EXPECT_EQ(node.cause, "cordoned");
  set(TaintSource::kOperator, TaintEffect::kOut, "a fan is broken");
  EXPECT_EQ(node.state, NodeState::kOffline);
  EXPECT_EQ(node.cause, "a fan is broken; cordoned");
  lift(TaintSource::kCluster);
  EXPECT_EQ(node.state, NodeState::kOffline) << "what a person has decided stays";
  set(TaintSource::kConnection, TaintEffect::kOut, "no answer");
  EXPECT_EQ(node.state, NodeState::kOffline) << "what a person has decided is shown first";
  EXPECT_FALSE(is_heard(node));
  set(TaintSource::kOperator, TaintEffect::kNoNewWork, "a fan is loud");
  EXPECT_EQ(node.state, NodeState::kLost);
  EXPECT_EQ(node.cause, "no answer; a fan is loud");
  set(TaintSource::kCluster, TaintEffect::kOut, "being deleted");
  EXPECT_EQ(node.state, NodeState::kLost);
  lift(TaintSource::kConnection);
  EXPECT_EQ(node.state, NodeState::kOffline);
  lift(TaintSource::kCluster);
  lift(TaintSource::kOperator);
  EXPECT_EQ(node.state, NodeState::kUp);
  EXPECT_EQ(node.cause, "");
}

TEST(Node, ItsFormerFactsBecomeTaints) {
  Node node;
  node.state = NodeState::kDraining;
  node.cause = "a fan is loud";
  node.former_is_heard = false;
  node.former_service = NodeService::kOffline;
  node.former_service_cause = "being deleted";
  add_former_taints(node);
  EXPECT_EQ(find_taint(node.taints, TaintSource::kOperator)->text, "a fan is loud");
  EXPECT_EQ(find_taint(node.taints, TaintSource::kCluster)->text, "being deleted");
  EXPECT_FALSE(is_heard(node));
  EXPECT_EQ(node.state, NodeState::kLost);
  const Taints once = node.taints;
  add_former_taints(node);
  EXPECT_EQ(node.taints, once) << "done once, it changes nothing";
  Node lost;
  lost.state = NodeState::kLost;
  lost.cause = "no answer";
  lost.former_is_heard = false;
  add_former_taints(lost);
  EXPECT_EQ(lost.taints.size(), 1U);
  EXPECT_EQ(lost.cause, "no answer");
}

TEST(Node, AGpuThatIsNotOursToGiveTakesNoNewWork) {
  Gpu gpu;
  EXPECT_TRUE(is_free(gpu));
  set_taint(
      gpu.taints,
      {TaintSource::kCluster, TaintEffect::kAvoided, "a pod of others has it", "cluster", {}});
  settle(gpu);
  EXPECT_EQ(gpu.state, GpuState::kAvailable);
  EXPECT_EQ(gpu.cause, "");
  EXPECT_EQ(gpu.changed_by, "");
  EXPECT_FALSE(is_free(gpu));
  EXPECT_FALSE(is_in_service(gpu));
}

TEST(GpuStates, FollowFromTaintsAndElseFromHolders) {
  Gpu gpu;
  const auto state = [&] {
    settle(gpu);
    return gpu.state;
  };
  EXPECT_EQ(state(), GpuState::kAvailable);
  const AttemptId first{JobId(1), 1};
  const AttemptId second{JobId(2), 1};
  gpu.holders = {{first, base::kWholeGpu, {}, {}}, {second, {}, {}, {}}};
  EXPECT_EQ(state(), GpuState::kAllocated);
  EXPECT_TRUE(set_phase(gpu, first, HolderPhase::kInUse));
  EXPECT_EQ(gpu.state, GpuState::kInUse);
  EXPECT_TRUE(set_phase(gpu, first, HolderPhase::kCleaning));
  EXPECT_EQ(gpu.state, GpuState::kAllocated) << "the other one is not there yet";
  EXPECT_TRUE(set_phase(gpu, second, HolderPhase::kCleaning));
  EXPECT_EQ(gpu.state, GpuState::kCleaning);
  EXPECT_FALSE(set_phase(gpu, {JobId(3), 1}, HolderPhase::kInUse)) << "it holds nothing";
  set_taint(gpu.taints, {TaintSource::kOperator, TaintEffect::kNoNewWork, "loud", "ann", {}});
  EXPECT_EQ(state(), GpuState::kDraining);
  EXPECT_EQ(gpu.cause, "loud");
  EXPECT_EQ(gpu.changed_by, "ann");
  set_taint(gpu.taints, {TaintSource::kDriver, TaintEffect::kOut, "gone", "node", {}});
  EXPECT_EQ(state(), GpuState::kOffline);
  lift_taint(gpu.taints, TaintSource::kDriver);
  lift_taint(gpu.taints, TaintSource::kOperator);
  EXPECT_EQ(state(), GpuState::kCleaning);
  gpu.holders.clear();
  EXPECT_EQ(state(), GpuState::kAvailable);
}

TEST(Capacity, ReservedNodesCountAsOnDemandForAJob) {
  using Class = CapacityClass;
  using Request = CapacityRequest;
  for (const Class any : {Class::kOnDemand, Class::kSpot, Class::kReserved}) {
    EXPECT_TRUE(accepts(Request::kAny, any));
    EXPECT_EQ(accepts(Request::kSpot, any), any == Class::kSpot);
    EXPECT_EQ(accepts(Request::kOnDemand, any), any != Class::kSpot);
    EXPECT_EQ(parse_capacity_class(to_string(any)), any);
  }
  EXPECT_EQ(parse_capacity_class("ON_DEMAND"), Class::kOnDemand);
  EXPECT_EQ(parse_capacity_class("any"), std::nullopt);
}

TEST(Engines, AreToldApartByWhatTheyCanDo) {
  const EngineTraits& processes = traits_of(EngineKind::kProcess);
  EXPECT_TRUE(processes.delivers_signals && processes.is_on_this_machine &&
              processes.is_empty_after_boot && processes.needs_container_engine);
  EXPECT_FALSE(processes.needs_named_annotations) << "the node part knows its rules";
  const EngineTraits& pods = traits_of(EngineKind::kKubernetes);
  EXPECT_TRUE(pods.admits_workloads && pods.needs_named_annotations);
  EXPECT_FALSE(pods.delivers_signals || pods.is_on_this_machine || pods.is_empty_after_boot ||
               pods.needs_container_engine);
  for (const EngineKind kind : kAllEngineKinds) {
    EXPECT_FALSE(traits_of(kind).place.empty()) << to_string(kind);
  }
}

TEST(EngineSets, HaveTheKindsThatWereAdded) {
  EngineSet set;
  EXPECT_TRUE(set.empty());
  set.add(EngineKind::kKubernetes);
  EXPECT_TRUE(set.contains(EngineKind::kKubernetes));
  EXPECT_FALSE(set.contains(EngineKind::kProcess));
  set.add(EngineKind::kProcess);
  EXPECT_EQ(set, kAnyEngine);
  EXPECT_EQ(kinds_in(set), (std::vector{EngineKind::kProcess, EngineKind::kKubernetes}));
  for (const EngineKind kind : kAllEngineKinds) {
    EXPECT_EQ(parse_engine_kind(to_string(kind)), kind);
  }
  EXPECT_EQ(parse_engine_kind("slurm"), std::nullopt);
}

TEST(Node, AGpuThatIsNotReportedKeepsItsIndexAndLosesItsLinks) {
  Node node;
  node.name = "n1";
  describe(node, node_with({"a", "b", "c"}));
  const NodeInfo without_b = node_with({"a", "c"});
  describe(node, without_b);
  ASSERT_EQ(node.gpus.size(), 3u);
  EXPECT_EQ(node.gpus[1].info.uuid, "b");
  EXPECT_FALSE(node.gpus[1].is_reported);
  EXPECT_EQ(link_between(node.topology, 3, 0, 1).kind, LinkKind::kUnknown);
  EXPECT_EQ(link_between(node.topology, 3, 0, 2), without_b.topology.links[0]);
  EXPECT_EQ(info_of(node), without_b);
}

TEST(Node, AGpuThatIsListedInAnotherPlaceKeepsItsIndexAndItsLinks) {
  Node node;
  node.name = "n1";
  describe(node, node_with({"a", "b", "c"}));
  const NodeInfo turned = node_with({"c", "b", "a"});
  describe(node, turned);
  EXPECT_EQ(node.gpus[0].info.uuid, "a");
  // a is the third and b the second in what was told: the last pair.
  EXPECT_EQ(link_between(node.topology, 3, 0, 1), turned.topology.links[2]);
}

Node with_numa(std::vector<std::int32_t> numa_of_gpus, std::uint32_t numa_nodes) {
  Node node;
  for (const std::int32_t numa : numa_of_gpus) {
    Gpu gpu;
    gpu.info.numa_node = numa;
    node.gpus.push_back(std::move(gpu));
  }
  for (std::uint32_t id = 0; id < numa_nodes; ++id) node.topology.numa_nodes.push_back({.id = id});
  return node;
}

TEST(NumaNodesNear, AreThoseOfTheGpus) {
  const Node node = with_numa({0, 0, 1, 2}, 3);
  EXPECT_EQ(numa_nodes_near(node, {0, 1}), (std::vector<NumaNode>{{.id = 0}}));
  EXPECT_EQ(numa_nodes_near(node, {3, 0}), (std::vector<NumaNode>{{.id = 0}, {.id = 2}}));
}

TEST(NumaNodesNear, AreNoneWhereThatWouldSayNothing) {
  EXPECT_TRUE(numa_nodes_near(with_numa({0}, 1), {0}).empty());
  EXPECT_TRUE(numa_nodes_near(with_numa({0, 1}, 2), {0, 1}).empty());
  EXPECT_TRUE(numa_nodes_near(with_numa({0, 1}, 2), {}).empty());
  EXPECT_TRUE(numa_nodes_near(with_numa({0, -1, 1}, 3), {0, 1}).empty());
  EXPECT_TRUE(numa_nodes_near(with_numa({0}, 0), {0}).empty());
}

}  // namespace
}  // namespace gpu_platform::model
