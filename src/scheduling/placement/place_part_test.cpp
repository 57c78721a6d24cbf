#include "scheduling/placement/place_part.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "scheduling/placement/place.h"
#include "scheduling/testing/world.h"
#include "scheduling/trial.h"

namespace gpu_platform::scheduling {
namespace {

using model::ShareMode;

const model::Tenant kRedAnn{1000, "red"};
const model::Tenant kRedBob{1001, "red"};
const model::Tenant kBlueEve{1002, "blue"};

model::ResourceRequest in_mode(model::ResourceRequest request, ShareMode mode) {
  request.share_mode = mode;
  return request;
}

// Takes what the request gets; its only grant.
std::optional<model::GpuGrant> take(Trial& trial, const model::ResourceRequest& request) {
  const auto allocation = place(trial, request);
  if (!allocation) return std::nullopt;
  trial.take(*allocation);
  return allocation->nodes.front().grants.front();
}

TEST(PlacePart, GetsItsShareOfTheGpuAndOfWhatGoesWithIt) {
  const Cluster cluster = cluster_of({node(1).gpus(2).shares()}, all_shared());
  const auto found = place(cluster, part(250));
  ASSERT_TRUE(found);
  const model::NodeAllocation& there = found->nodes.front();
  ASSERT_EQ(there.grants.size(), 1U);
  const model::GpuGrant& grant = there.grants.front();
  EXPECT_EQ(grant.share, base::GpuShare(1750));
  EXPECT_EQ(grant.memory, base::kGiB * 20);
  EXPECT_EQ(grant.mode, ShareMode::kMps) << "the site prefers it";
  EXPECT_EQ(grant.wall, (model::Wall{model::Rung::kWatchdog, model::Rung::kMpsLimit}))
      << "an MPS limit of memory is one for each process";
  EXPECT_EQ(there.cpus, 8U) << "an eighth of 64";
  EXPECT_EQ(there.memory, base::kGiB * 64);
  EXPECT_EQ(found->tenant, kRedAnn);
  EXPECT_TRUE(model::is_part(*found));
}

TEST(PlacePart, TheMemoryThatTheJobNeedsIsItsLimit) {
  Cluster cluster = cluster_of({node(1).gpus(1).shares()}, all_shared());
  Trial trial(cluster);
  model::ResourceRequest request = part(250);
  request.gpu_memory = base::kGiB * 50;
  EXPECT_EQ(take(trial, request).value().memory, base::kGiB * 50);
  EXPECT_FALSE(take(trial, request)) << "100 GiB of 80";
  request.gpu_memory = base::kGiB * 30;
  EXPECT_TRUE(take(trial, request));
  request.gpu_memory = base::kGiB * 81;
  Cluster empty = cluster_of({node(1).gpus(1).shares()}, all_shared());
  EXPECT_FALSE(place(empty, request));
}

TEST(PlacePart, GoesToTheFullestGpuThatHasRoom) {
  Cluster cluster = cluster_of(
      {node(1).gpus(1).shares(), node(2).gpus(1).shares(), node(3).gpus(1).shares()}, all_shared());
  Trial trial(cluster);
  const auto on = [&](std::int64_t thousandths) {
    const auto allocation = place(trial, part(thousandths));
    if (!allocation) return std::uint64_t{0};
    trial.take(*allocation);
    return allocation->nodes.front().node.value;
  };
  EXPECT_EQ(on(500), 1U);
  EXPECT_EQ(on(750), 2U) << "opens another";
  EXPECT_EQ(on(250), 2U) << "0.25 are left there, and 0.5 on the first";
  EXPECT_EQ(on(250), 1U);
  EXPECT_EQ(on(250), 1U);
  EXPECT_EQ(on(1), 3U);
  EXPECT_FALSE(place(trial, gpus(1)));
}

TEST(PlacePart, OpensTheGpuThatAJobOfOneGpuWouldGet) {
  Cluster cluster =
      cluster_of({node(1).gpus(8).shares(), node(2).gpus(8).shares().busy(0)}, all_shared());
  const auto whole = place(cluster, gpus(1));
  const auto opened = place(cluster, part(500));
  ASSERT_TRUE(whole && opened);
  EXPECT_EQ(opened->nodes.front().node, whole->nodes.front().node);
  EXPECT_EQ(indices(*opened), indices(*whole));
  EXPECT_EQ(opened->nodes.front().node, model::NodeId(2)) << "the other one stays whole";
}

TEST(PlacePart, AGpuIsSharedInOneWayAtATime) {
  Cluster cluster = cluster_of({node(1).gpus(2).shares()}, all_shared());
  Trial trial(cluster);
  EXPECT_EQ(take(trial, in_mode(part(250), ShareMode::kTimeSlice)).value().gpu_index, 0U);
  EXPECT_EQ(take(trial, in_mode(part(250), ShareMode::kMps)).value().gpu_index, 1U);
  EXPECT_EQ(take(trial, in_mode(part(250), ShareMode::kTimeSlice)).value().gpu_index, 0U);
  const auto any = take(trial, part(250)).value();
  EXPECT_EQ(any.gpu_index, 1U) << "MPS first";
  EXPECT_EQ(any.mode, ShareMode::kMps);
}

TEST(PlacePart, JoinsBeforeItOpensEvenInAnotherMode) {
  Cluster cluster = cluster_of({node(1).gpus(2).shares()}, all_shared());
  Trial trial(cluster);
  take(trial, in_mode(part(250), ShareMode::kTimeSlice));
  EXPECT_EQ(take(trial, part(250)).value().gpu_index, 0U);
}

TEST(PlacePart, OfOtherUsersOnlyAsTheSiteSays) {
  const auto shares_with = [](model::SharedBetween between, const model::Tenant& other,
                              ShareMode mode) {
    Cluster cluster = cluster_of({node(1).gpus(1).shares()}, all_shared(between));
    Trial trial(cluster);
    EXPECT_TRUE(take(trial, in_mode(part(250, kRedAnn), mode)));
    EXPECT_TRUE(take(trial, in_mode(part(250, kRedAnn), mode)));
    return take(trial, in_mode(part(250, other), mode)).has_value();
  };
  const auto slice = ShareMode::kTimeSlice;
  EXPECT_FALSE(shares_with(model::SharedBetween::kNever, kRedBob, slice));
  EXPECT_TRUE(shares_with(model::SharedBetween::kTeam, kRedBob, slice));
  EXPECT_FALSE(shares_with(model::SharedBetween::kTeam, kBlueEve, slice));
  EXPECT_TRUE(shares_with(model::SharedBetween::kAll, kBlueEve, slice));
  EXPECT_FALSE(shares_with(model::SharedBetween::kAll, kRedBob, ShareMode::kMps))
      << "an MPS server is of one user";
  EXPECT_TRUE(shares_with(model::SharedBetween::kTeam, {1000, "other"}, slice)) << "the same user";
  EXPECT_FALSE(shares_with(model::SharedBetween::kTeam, {1003, ""}, slice)) << "no team is no team";
}

TEST(PlacePart, NoMoreJobsShareAGpuThanTheSiteLets) {
  model::Sharing rules = all_shared();
  rules.max_jobs = 2;
  Cluster cluster = cluster_of({node(1).gpus(1).shares()}, rules);
  Trial trial(cluster);
  EXPECT_TRUE(take(trial, part(100)));
  EXPECT_TRUE(take(trial, part(100)));
  EXPECT_FALSE(take(trial, part(100)));
}

TEST(PlacePart, OnlyWhereTheSiteAndTheNodeLetJobsShare) {
  EXPECT_FALSE(place(cluster_of({node(1).gpus(1).shares()}), part(500))) << "not on";
  EXPECT_FALSE(place(cluster_of({node(1).gpus(1)}, all_shared()), part(500))) << "no mechanism";
  EXPECT_FALSE(place(cluster_of({node(1).gpus(1).shares().kubernetes()}, all_shared()), part(500)));
  model::Sharing of_type = all_shared();
  of_type.gpu_types = {"A100"};
  const Cluster cluster =
      cluster_of({node(1).gpus(1).shares(), node(2).gpus(1, "A100-80GB").shares()}, of_type);
  EXPECT_EQ(place(cluster, part(500)).value().nodes.front().node, model::NodeId(2));
  model::Sharing mps = all_shared();
  mps.modes = {ShareMode::kMps};
  EXPECT_FALSE(
      place(cluster_of({node(1).gpus(1).shares({ShareMode::kTimeSlice})}, mps), part(500)));
}

TEST(PlacePart, GetsNoMpsServerOnAGpuThatCannotLimitIt) {
  model::Node pascal = node(1).gpus(1, "P100-16GB").shares();
  pascal.gpus[0].info.compute_major = 6;
  const Cluster cluster = cluster_of({pascal}, all_shared());
  EXPECT_FALSE(place(cluster, in_mode(part(500), ShareMode::kMps)));
  EXPECT_EQ(place(cluster, part(500)).value().nodes.front().grants.front().mode,
            ShareMode::kTimeSlice);
  pascal.gpus[0].info.compute_major = 7;
  EXPECT_TRUE(place(cluster_of({pascal}, all_shared()), in_mode(part(500), ShareMode::kMps)));
}

TEST(PlacePart, FollowsWhatIsKnownOfTheGpusLater) {
  model::Node described = node(1).gpus(1).shares();
  Cluster cluster = cluster_of({described}, all_shared());
  ASSERT_TRUE(place(cluster, in_mode(part(500), ShareMode::kMps)));
  described.gpus[0].info.compute_major = 6;
  EXPECT_TRUE(cluster.update(described));
  EXPECT_FALSE(place(cluster, in_mode(part(500), ShareMode::kMps)));
}

TEST(PlacePart, NeverBehindAWeakerWallThanTheSiteOrTheJobAccepts) {
  const Cluster cluster = cluster_of({node(1).gpus(1).shares()}, all_shared());
  model::ResourceRequest strict = part(500);
  strict.require_isolation = model::Isolation::kMemory;
  EXPECT_FALSE(place(cluster, strict)) << "a watchdog and an MPS limit are weaker";
  model::Sharing rules = all_shared();
  rules.weakest_rung = model::Rung::kMpsLimit;
  const Cluster stronger = cluster_of({node(1).gpus(1).shares()}, rules);
  EXPECT_FALSE(place(stronger, in_mode(part(500), ShareMode::kTimeSlice)));
  EXPECT_FALSE(place(stronger, in_mode(part(500), ShareMode::kMps)));
}

TEST(PlacePart, WhereNoMemoryIsReadThereIsNoWallAroundIt) {
  model::Sharing rules = all_shared();
  const auto node_of = [] { return node(1).gpus(1).shares().unwatched(); };
  EXPECT_FALSE(place(cluster_of({node_of()}, rules), part(500)));
  rules.weakest_rung = model::Rung::kAdvisory;
  const auto found = place(cluster_of({node_of()}, rules), part(500));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->nodes.front().grants.front().wall.memory, model::Rung::kAdvisory);
}

TEST(PlacePart, AJobOfRootHasNoWallThatItCouldNotUndo) {
  const model::Tenant root{0, "red"};
  model::Sharing rules = all_shared();
  const auto node_of = [] { return node(1).gpus(1).shares({ShareMode::kTimeSlice}); };
  EXPECT_TRUE(place(cluster_of({node_of()}, rules), part(500)));
  EXPECT_FALSE(place(cluster_of({node_of()}, rules), part(500, root)));
  EXPECT_FALSE(some_node_up_could_hold(cluster_of({node_of()}, rules), part(500, root)));
  rules.weakest_rung = model::Rung::kAdvisory;
  const auto found = place(cluster_of({node_of()}, rules), part(500, root));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->nodes.front().grants.front().wall,
            (model::Wall{model::Rung::kAdvisory, model::Rung::kAdvisory}));
  EXPECT_TRUE(some_node_up_could_hold(cluster_of({node_of()}, rules), part(500, root)));
  const auto of_ann = place(cluster_of({node_of()}, rules), part(500));
  ASSERT_TRUE(of_ann);
  EXPECT_EQ(of_ann->nodes.front().grants.front().wall,
            (model::Wall{model::Rung::kWatchdog, model::Rung::kFrozen}));
}

TEST(PlacePart, AGpuIsWholeAgainWithItsLastPart) {
  Cluster cluster = cluster_of({node(1).gpus(1).shares()}, all_shared());
  const std::uint64_t before = cluster.hash();
  Trial trial(cluster);
  const auto first = *place(trial, part(500));
  trial.take(first);
  const auto second = *place(trial, part(250));
  trial.take(second);
  trial.release(first);
  EXPECT_FALSE(place(trial, gpus(1)));
  EXPECT_TRUE(place(trial, part(750)));
  trial.release(second);
  EXPECT_TRUE(place(trial, gpus(1)));
  EXPECT_EQ(cluster.hash(), before);
}

TEST(PlacePart, AGpuThatIsKeptFromWorkTakesNoMoreParts) {
  std::vector<model::Node> nodes = {node(1).gpus(1).shares()};
  Cluster cluster = cluster_of(nodes, all_shared());
  occupy(nodes, *place(cluster, part(250)), model::JobId(1));
  EXPECT_TRUE(cluster.update(nodes[0]));
  EXPECT_TRUE(place(cluster, part(250)));
  model::set_taint(
      nodes[0].gpus[0].taints,
      {model::TaintSource::kOperator, model::TaintEffect::kNoNewWork, "drained", "ann", {}});
  model::settle(nodes[0].gpus[0]);
  EXPECT_TRUE(cluster.update(nodes[0]));
  EXPECT_FALSE(place(cluster, part(250)));
}

TEST(PlacePart, HasNoRoomInWhatIsWithheld) {
  std::vector<model::Node> nodes = {node(1).gpus(1).shares().named()};
  Cluster cluster = cluster_of(nodes, all_shared());
  occupy(nodes, *place(cluster, part(250)), model::JobId(1));
  cluster.update(nodes[0]);
  model::ResourceRequest request = part(250);
  request.gpus_avoid = {uuid_in_tests(1, 0)};
  Trial trial(cluster);
  EXPECT_FALSE(place(trial, request));
  request.gpus_avoid.clear();
  request.gpus_only = {uuid_in_tests(1, 0)};
  EXPECT_TRUE(place(trial, request));
  request.gpus_only.clear();
  request.exclude = {model::NodeId(1)};
  EXPECT_FALSE(place(trial, request));
}

TEST(PlacePart, AWholeJobNeverGetsAGpuInParts) {
  std::vector<model::Node> nodes = {node(1).gpus(2).shares()};
  Cluster cluster = cluster_of(nodes, all_shared());
  occupy(nodes, *place(cluster, part(1)), model::JobId(1));
  cluster.update(nodes[0]);
  EXPECT_TRUE(place(cluster, gpus(1)));
  EXPECT_FALSE(place(cluster, gpus(2)));
}

TEST(PlacePart, TheTypesOfTheRequestComeInItsOrder) {
  Cluster cluster =
      cluster_of({node(1).gpus(1, "A100-80GB").shares(), node(2).gpus(1).shares()}, all_shared());
  Trial trial(cluster);
  model::ResourceRequest a100 = part(500);
  a100.gpu_types = {"A100"};
  trial.take(*place(trial, a100));
  model::ResourceRequest request = part(250);
  request.gpu_types = {"H100", "A100"};
  EXPECT_EQ(place(trial, request).value().nodes.front().node, model::NodeId(2));
}

}  // namespace
}  // namespace gpu_platform::scheduling
