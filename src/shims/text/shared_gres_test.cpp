#include "shims/text/shared_gres.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "shims/views/job_amounts.h"
#include "shims/views/job_gres.h"

namespace gpu_platform::shims {
namespace {

TEST(SharedGres, IsReadBesideOtherResources) {
  const auto read = [](std::string_view text) { return parse_shared_gres(text).value(); };
  EXPECT_EQ(read("shard:2"), (SharedGres{false, 2}));
  EXPECT_EQ(read("gres/mps:50"), (SharedGres{true, 50}));
  EXPECT_EQ(read("craynetwork:1,shard"), (SharedGres{false, 1}));
  EXPECT_EQ(read("mps=25"), (SharedGres{true, 25}));
  EXPECT_EQ(read("gpu:2"), std::nullopt);
  EXPECT_EQ(read("shard:0"), std::nullopt);
  EXPECT_EQ(read("shardlike:1"), std::nullopt);
  EXPECT_FALSE(parse_shared_gres("shard:2,mps:50").has_value());
  EXPECT_FALSE(parse_shared_gres("shard:a100:2").has_value());
  EXPECT_FALSE(parse_shared_gres("mps:-1").has_value());
  EXPECT_TRUE(is_shared_gres("gres/shard:1"));
  EXPECT_FALSE(is_shared_gres("gpu"));
}

TEST(SharedGres, BecomesAPartOfOneGpu) {
  v1::JobSpec quarter;
  ASSERT_TRUE(put_shared_gres({false, 1}, 4, quarter).has_value());
  EXPECT_EQ(quarter.gpus(), 1U);
  EXPECT_DOUBLE_EQ(quarter.gpu_share(), 0.25);
  EXPECT_FALSE(quarter.has_share_mode());
  EXPECT_EQ(shared_gres_of(quarter), "shard:1");
  v1::JobSpec half;
  ASSERT_TRUE(put_shared_gres({true, 50}, 4, half).has_value());
  EXPECT_DOUBLE_EQ(half.gpu_share(), 0.5);
  EXPECT_EQ(half.share_mode(), v1::SHARE_MODE_MPS);
  EXPECT_EQ(shared_gres_of(half), "mps:50");
}

TEST(SharedGres, AsManyAsAGpuHasAreAWholeGpuAndMoreAreRefused) {
  v1::JobSpec whole;
  ASSERT_TRUE(put_shared_gres({true, 100}, 4, whole).has_value());
  EXPECT_EQ(whole.gpus(), 1U);
  EXPECT_FALSE(whole.has_gpu_share());
  EXPECT_EQ(shared_gres_of(whole), "");
  const auto refused = put_shared_gres({false, 5}, 4, whole);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().field, "--gres");
  EXPECT_EQ(refused.error().message,
            "shard:5 is more than one GPU, which has 4; write gpu:N for whole GPUs");
}

TEST(SharedGres, SixShardsOfSixFitOnAGpu) {
  v1::JobSpec sixth;
  ASSERT_TRUE(put_shared_gres({false, 1}, 6, sixth).has_value());
  EXPECT_LE(sixth.gpu_share() * 6, 1);
  EXPECT_EQ(shared_gres_of(sixth), "shard:1");
}

TEST(SharedGres, IsWhatColumnsShow) {
  v1::Job job;
  job.set_id("7");
  v1::JobSpec& spec = *job.mutable_spec();
  ASSERT_TRUE(put_shared_gres({false, 2}, 4, spec).has_value());
  EXPECT_EQ(gpus_asked(job, GpusPer::kNode), "shard:2");
  EXPECT_EQ(gpus_asked(job, GpusPer::kJob), "");
  EXPECT_TRUE(trackable(job, 1).ends_with(",gres/shard=2")) << trackable(job, 1);
  v1::GpuUse& gpu = *job.add_gpus();
  gpu.set_node("n1");
  gpu.set_index(3);
  gpu.set_share(0.5);
  const JobPart part{"n1", 4, 1024, "H100-80GB", {3}, "shard:2"};
  EXPECT_EQ(gres_of(part), "shard:2(IDX:3)");
  EXPECT_EQ(gres_of_job({part}), "shard:2");
  // A part of another command is a percentage.
  spec.clear_labels();
  EXPECT_EQ(gpus_asked(job, GpusPer::kNode), "mps:50");
}

TEST(SharedGres, NodesHaveShardsWhereGpusAreShared) {
  NodeView node;
  node.cpus = 8;
  node.gpus = {{"H100-80GB", 2, {0}, 0.75}};
  EXPECT_EQ(gres_of(node), "gpu:H100-80GB:2");
  node.shards_per_gpu = 4;
  EXPECT_EQ(gres_of(node), "gpu:H100-80GB:2,shard:H100-80GB:8");
  EXPECT_EQ(gres_used_of(node), "gpu:H100-80GB:1(IDX:0),shard:H100-80GB:3");
  EXPECT_TRUE(trackable_of(node).ends_with(",gres/gpu=2,gres/shard=8")) << trackable_of(node);
  EXPECT_TRUE(trackable_used_of(node).ends_with("gres/gpu=1,gres/shard=3"));
}

}  // namespace
}  // namespace gpu_platform::shims
