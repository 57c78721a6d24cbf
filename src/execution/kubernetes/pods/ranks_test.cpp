#include "execution/kubernetes/pods/ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "execution/job_variables.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

LaunchNode rank_node(const std::string& name, const std::vector<std::uint32_t>& gpu_indices) {
  LaunchNode node;
  node.node_name = name;
  node.cpus = 9;
  node.memory = base::kGiB * 10;
  for (const std::uint32_t index : gpu_indices) {
    model::GpuInfo gpu;
    gpu.uuid = "GPU-" + name + "-" + std::to_string(index);
    node.gpus.push_back({.info = gpu, .grant = {.gpu_index = index}});
  }
  return node;
}

StartOrder rank_order(const model::JobSpec& spec) {
  StartOrder order;
  order.attempt = {model::JobId(42), 2};
  order.spec = std::make_shared<const model::JobSpec>(spec);
  order.nodes = {rank_node("n1", {0, 3}), rank_node("n2", {5, 6})};
  return order;
}

model::JobSpec a_gang() {
  model::JobSpec spec;
  spec.name = "train";
  spec.request.nodes = 2;
  return spec;
}

KubernetesSettings rank_settings() {
  KubernetesSettings settings;
  settings.cluster = "lab";
  return settings;
}

std::string submitted(std::initializer_list<std::string_view> entries) {
  std::string bytes;
  for (const std::string_view entry : entries) bytes.append(entry).push_back('\0');
  return bytes;
}

TEST(Ranks, AreOneForEachNode) {
  const std::vector<Rank> ranks = ranks_of(rank_order(a_gang()));
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[1].node, 1U);
  EXPECT_EQ(ranks[1].gpus.size(), 2U);
  EXPECT_EQ(ranks[1].cpus, 9U);
}

TEST(Ranks, OfGpusShareTheirNodesCpusAndMemoryExactly) {
  model::JobSpec spec = a_gang();
  spec.per_gpu = true;
  const std::vector<Rank> ranks = ranks_of(rank_order(spec));
  ASSERT_EQ(ranks.size(), 4U);
  EXPECT_EQ(ranks[3].node, 1U);
  EXPECT_EQ(ranks[3].local, 1U);
  EXPECT_EQ(ranks[3].gpus[0].info.uuid, "GPU-n2-6");
  EXPECT_EQ(indices_of(ranks[3].gpus), std::vector<std::uint32_t>{6});
  EXPECT_EQ(ranks[2].cpus + ranks[3].cpus, 9U);
  EXPECT_EQ(ranks[2].memory, base::kGiB * 5);
}

TEST(Ranks, AreTheFirstNodesAloneIfThatLeads) {
  model::JobSpec spec = a_gang();
  spec.first_node_only = true;
  const StartOrder order = rank_order(spec);
  EXPECT_EQ(ranks_of(order).size(), 1U);
  EXPECT_THAT(pod_environment(order, 0, {}, rank_settings()), Contains("MASTER_ADDR=127.0.0.1"));
}

TEST(PodEnvironment, TellsARankWhatItHas) {
  EXPECT_THAT(
      pod_environment(rank_order(a_gang()), 1, submitted({"PATH=/opt", "HOME=/h"}),
                      rank_settings()),
      IsSupersetOf({"GPU_PLATFORM_JOB_ID=42", "GPU_PLATFORM_ATTEMPT=2",
                    "GPU_PLATFORM_JOB_NAME=train", "GPU_PLATFORM_NODE=n2", "GPU_PLATFORM_GPUS=5,6",
                    "GPU_PLATFORM_CPUS=9", "GPU_PLATFORM_MEMORY_BYTES=10737418240", "NNODES=2",
                    "NODE_RANK=1", "MASTER_ADDR=rank-0.gp-lab-42-2", "GPU_PLATFORM_NODELIST=n1,n2",
                    "PATH=/opt", "HOME=/h"}));
}

TEST(PodEnvironment, NumbersTheProcessesOfGpus) {
  model::JobSpec spec = a_gang();
  spec.per_gpu = true;
  EXPECT_THAT(pod_environment(rank_order(spec), 3, {}, rank_settings()),
              IsSupersetOf({"RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2",
                            "NODE_RANK=1", "GPU_PLATFORM_GPUS=6"}));
}

TEST(PodEnvironment, AJobOfOneProcessHasNoVariablesOfAGang) {
  StartOrder order = rank_order(model::JobSpec());
  order.nodes.resize(1);
  const auto environment = pod_environment(order, 0, {}, rank_settings());
  EXPECT_THAT(environment, Not(Contains(HasSubstr("MASTER_"))));
  EXPECT_THAT(environment, Not(Contains(HasSubstr("NODE_RANK"))));
}

TEST(PodEnvironment, TheUserChoosesNoDevicesAndNoIdentity) {
  const auto environment = pod_environment(
      rank_order(a_gang()), 0,
      submitted({"CUDA_VISIBLE_DEVICES=0,1", "NVIDIA_VISIBLE_DEVICES=all", "MASTER_ADDR=evil",
                 "GPU_PLATFORM_JOB_ID=1", "MASTER_PORT=1", "NODE_RANK=9"}),
      rank_settings());
  EXPECT_THAT(environment, Not(Contains(HasSubstr("CUDA_VISIBLE_DEVICES"))));
  EXPECT_THAT(environment,
              IsSupersetOf({"NVIDIA_VISIBLE_DEVICES=void", "NODE_RANK=0",
                            "MASTER_ADDR=rank-0.gp-lab-42-2", "GPU_PLATFORM_JOB_ID=42"}));
  EXPECT_THAT(environment, Not(Contains("MASTER_PORT=1")));
}

TEST(PodEnvironment, WhatDividesTheDevicesOfAPodIsTheUsersToSay) {
  const std::vector<std::string> of_plugins = {
      "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8G",
      "CUDA_MPS_PIPE_DIRECTORY=/mps", "NVIDIA_GPU_MEMORY_LIMIT=8192",
      "NVIDIA_GPU_MEMORY_REQUEST=4096"};
  std::string bytes;
  for (const std::string& entry : of_plugins) bytes.append(entry).push_back('\0');
  EXPECT_THAT(pod_environment(rank_order(a_gang()), 0, bytes, rank_settings()),
              IsSupersetOf(of_plugins));
}

TEST(PodEnvironment, ADevicePluginSaysItselfWhichGpusThereAre) {
  KubernetesSettings counts = rank_settings();
  counts.devices = DeviceMode::kCounts;
  StartOrder order = rank_order(a_gang());
  EXPECT_THAT(pod_environment(order, 0, submitted({"NVIDIA_VISIBLE_DEVICES=all"}), counts),
              Not(Contains(HasSubstr("NVIDIA_VISIBLE_DEVICES"))));
  order.nodes[0].gpus.clear();
  EXPECT_THAT(pod_environment(order, 0, {}, counts), Contains("NVIDIA_VISIBLE_DEVICES=void"));
}

}  // namespace
}  // namespace gpu_platform::execution
