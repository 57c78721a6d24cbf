#include "shims/views/billing_weights.h"

#include <gtest/gtest.h>

#include "client/answer.h"
#include "shims/views/node_view.h"

namespace gpu_platform::shims {
namespace {

constexpr auto kPrices =
    R"({"billing_weights":[)"
    R"({"gpu_type":"A100-40GB","models":["NVIDIA A100-SXM4-40GB"],"per_hour":"4.10"},)"
    R"({"gpu_type":"H100-80GB","models":["NVIDIA H100 80GB HBM3"],"per_hour":"5.50"}],)"
    R"("core_hour":"0.50","gib_hour":"0.125"})";

BillingWeights priced_site() {
  return billing_weights_in(*client::message_of<v1::SlurmNames>(kPrices));
}

v1::Job billed_job(std::string_view document) {
  return *client::message_of<v1::Job>(document);
}

TEST(BillingWeights, AreThePricesOfAnHour) {
  const BillingWeights weights = priced_site();
  EXPECT_EQ(weights_text(weights, {"H100-80GB", "L40S"}),
            "GRES/gpu:h100-80gb=5.5,CPU=0.5,Mem=0.125G");
  EXPECT_EQ(weights_text(weights, {"H100-80GB", "A100-40GB"}),
            "GRES/gpu:a100-40gb=4.1,GRES/gpu:h100-80gb=5.5,CPU=0.5,Mem=0.125G");
  EXPECT_EQ(weights_text({}, {"H100-80GB"}), "");
  EXPECT_EQ(weight_of_type(weights, "h100").value(), 5'500'000);
  EXPECT_EQ(weight_of_type(weights, "L40S").value(), 0);
}

TEST(BillingWeights, BillAJobForTheGpusThatItHas) {
  const v1::Job job = billed_job(
      R"({"cpus":4,"spec":{"gpus":2,"gpu_types":["H100","A100"]},"attempts":[{"nodes":["n1"],)"
      R"("gpus":[{"node":"n1","index":0,"model":"NVIDIA A100-SXM4-40GB","share":1},)"
      R"({"node":"n1","index":1,"model":"NVIDIA A100-SXM4-40GB","share":1}]}]})");
  EXPECT_EQ(held_tres(job, priced_site()), "cpu=4,node=1,billing=8,gres/gpu=2");
  EXPECT_EQ(requested_tres(job, priced_site()), "cpu=4,node=1,billing=11,gres/gpu=2")
      << "it may get those that cost most";
  EXPECT_EQ(held_tres(job, {}), "cpu=4,node=1,billing=4,gres/gpu=2") << "a site without prices";
}

TEST(BillingWeights, BillAPartOfAGpuAsThatPart) {
  const v1::Job job = billed_job(
      R"({"cpus":1,"spec":{"gpus":1,"gpu_share":0.5},"attempts":[{"nodes":["n1"],)"
      R"("gpus":[{"node":"n1","index":0,"model":"NVIDIA H100 80GB HBM3","share":0.5}]}]})");
  EXPECT_NE(held_tres(job, priced_site()).find("billing=2,"), std::string::npos);
  EXPECT_NE(requested_tres(job, priced_site()).find("billing=2,"), std::string::npos);
}

TEST(BillingWeights, BillCpusAndMemoryOfJobsWithoutGpus) {
  const v1::Job job = billed_job(R"({"cpus":4,"memory_bytes":17179869184,"spec":{"gpus":0}})");
  EXPECT_EQ(held_tres(job, priced_site()), "cpu=4,mem=16G,node=1,billing=4");
}

TEST(BillingWeights, MakeMinutesOfABudget) {
  EXPECT_EQ(billing_minutes("100.00"), 6000);
  EXPECT_EQ(billing_minutes("0.009"), 0) << "cut off";
  EXPECT_EQ(billing_minutes("1000000000.00"), 60'000'000'000);
  EXPECT_EQ(billing_minutes(""), 0);
}

TEST(BillingWeights, AreShownWithThePartition) {
  NodeView node;
  node.name = "n1";
  node.cpus = 8;
  node.memory_mib = 2048;
  node.gpus = {{"H100-80GB", 2, {}}};
  const Partition all = usual_site().partitions.front();
  const PartitionTres tres = tres_of_partition(all, priced_site(), {node});
  EXPECT_EQ(tres.text, "cpu=8,mem=2G,node=1,billing=11,gres/gpu=2");
  EXPECT_EQ(tres.weights, "GRES/gpu:h100-80gb=5.5,CPU=0.5,Mem=0.125G");
  EXPECT_EQ(tres_of_partition(all, {}, {node}).text, "cpu=8,mem=2G,node=1,billing=8,gres/gpu=2");
}

}  // namespace
}  // namespace gpu_platform::shims
