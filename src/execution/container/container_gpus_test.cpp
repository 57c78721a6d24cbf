#include "execution/container/container_gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "execution/container/create_body.h"

namespace gpu_platform::execution {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A text with the NUL that ends it, as requests have them.
constexpr std::string_view c_text(const char* text) {
  return {text, std::char_traits<char>::length(text) + 1};
}
constexpr std::string_view kUuid = c_text("GPU-11111111-2222-3333-4444-555555555555");

node::LaunchRequest request_with_gpu() {
  node::LaunchRequest request;
  request.command = {c_text("true")};
  request.environment = {c_text("A=1"), c_text("CUDA_VISIBLE_DEVICES=GPU-1"),
                         c_text("NVIDIA_VISIBLE_DEVICES=all")};
  request.container.image = c_text("localhost/a:1");
  request.container.gpus = {kUuid};
  request.devices = {{node::kGpuMajor, 3}};
  return request;
}

ContainerPlan plan_for(const node::LaunchRequest& request, const ContainerRules& rules,
                       GpuWay way) {
  ContainerPlan plan;
  plan.request = &request;
  plan.rules = &rules;
  plan.attempt = "1-1";
  plan.gpu_way = way;
  return plan;
}

TEST(ContainerGpus, TheWayIsTheRulesElseWhatTheEngineCan) {
  const node::LaunchRequest request = request_with_gpu();
  const Json can = {{"CDISpecDirs", {"/etc/cdi"}}};
  EXPECT_EQ(gpu_way(request, {}, can, 50), GpuWay::kCdi);
  EXPECT_EQ(gpu_way(request, {}, can, 49), GpuWay::kNvidia) << "it may be switched off there";
  EXPECT_EQ(gpu_way(request, {}, {{"CDISpecDirs", Json::array()}}, 50), GpuWay::kNvidia);
  EXPECT_EQ(gpu_way(request, {}, Json("garbage"), 50), GpuWay::kNvidia);
  ContainerRules rules;
  rules.gpus = "nodes";
  EXPECT_EQ(gpu_way(request, rules, can, 50), GpuWay::kNodes);
  node::LaunchRequest emulated = request;
  emulated.container.board_files = {c_text("/a:/a")};
  rules.gpus = "cdi";
  EXPECT_EQ(gpu_way(emulated, rules, can, 50), GpuWay::kNodes) << "no driver knows of it";
  EXPECT_EQ(gpu_way({}, rules, can, 50), GpuWay::kNone);
}

// Podman takes a quarter of a second for the answer.
TEST(ContainerGpus, TheEngineIsAskedForItsWayWhereNothingElseSaysIt) {
  const node::LaunchRequest request = request_with_gpu();
  ContainerRules rules;
  EXPECT_TRUE(is_gpu_way_the_engines(request, rules, 50));
  EXPECT_FALSE(is_gpu_way_the_engines(request, rules, 41)) << "Podman";
  EXPECT_FALSE(is_gpu_way_the_engines({}, rules, 50)) << "it has no GPUs";
  rules.gpus = "nvidia";
  EXPECT_FALSE(is_gpu_way_the_engines(request, rules, 50));
  node::LaunchRequest emulated = request;
  emulated.container.board_files = {c_text("/a:/a")};
  EXPECT_FALSE(is_gpu_way_the_engines(emulated, {}, 50));
}

TEST(ContainerGpus, TheEngineIsAskedForThemByUuid) {
  const node::LaunchRequest request = request_with_gpu();
  const ContainerRules rules;
  const auto cdi = create_body(plan_for(request, rules, GpuWay::kCdi));
  ASSERT_TRUE(cdi);
  const std::string uuid(kUuid.substr(0, kUuid.size() - 1));
  const Json asked = {{"Driver", "cdi"}, {"DeviceIDs", {"nvidia.com/gpu=" + uuid}}};
  EXPECT_EQ((*cdi)["HostConfig"]["DeviceRequests"], Json::array({asked}));
  const auto nvidia = create_body(plan_for(request, rules, GpuWay::kNvidia));
  ASSERT_TRUE(nvidia);
  const Json& classic = (*nvidia)["HostConfig"]["DeviceRequests"][0];
  EXPECT_EQ(classic["DeviceIDs"], Json::array({uuid}));
  EXPECT_EQ(classic["Capabilities"], Json::parse(R"([["gpu","utility","compute"]])"));
  EXPECT_FALSE(classic.contains("Count")) << "engines refuse it beside the names";
}

TEST(ContainerGpus, DeviceNodesAreNamedOneByOne) {
  const node::LaunchRequest request = request_with_gpu();
  const ContainerRules rules;
  ContainerPlan plan = plan_for(request, rules, GpuWay::kNodes);
  plan.gpu_nodes = {{"/run/x/nvidia3", "/dev/nvidia3"}};
  const auto body = create_body(plan);
  ASSERT_TRUE(body);
  const Json& device = (*body)["HostConfig"]["Devices"][0];
  EXPECT_EQ(device["PathOnHost"], "/run/x/nvidia3");
  EXPECT_EQ(device["PathInContainer"], "/dev/nvidia3");
  EXPECT_FALSE((*body)["HostConfig"].contains("DeviceRequests"));
}

TEST(ContainerGpus, NothingInTheEnvironmentAsksForOtherGpus) {
  const node::LaunchRequest request = request_with_gpu();
  const auto with_cdi = container_environment(request, GpuWay::kCdi);
  EXPECT_THAT(with_cdi, Contains("A=1"));
  EXPECT_THAT(with_cdi, Contains("CUDA_VISIBLE_DEVICES=GPU-1")) << "as the request has it";
  EXPECT_THAT(with_cdi, Contains("NVIDIA_VISIBLE_DEVICES=void"));
  EXPECT_THAT(with_cdi, Not(Contains("NVIDIA_VISIBLE_DEVICES=all")));
  EXPECT_THAT(container_environment(request, GpuWay::kNvidia),
              Not(Contains(StartsWith("NVIDIA_VISIBLE_DEVICES"))))
      << "the engine sets it";
  EXPECT_THAT(container_environment(request, GpuWay::kNone),
              Contains("NVIDIA_VISIBLE_DEVICES=void"))
      << "an image may ask for all of them";
}

TEST(ContainerGpus, ADroppedGpuIsSeen) {
  const node::LaunchRequest request = request_with_gpu();
  const ContainerRules rules;
  const auto asked = create_body(plan_for(request, rules, GpuWay::kCdi));
  ASSERT_TRUE(asked);
  Json made = *asked;
  made["Mounts"] = Json::array();
  EXPECT_EQ(difference(*asked, made), "");
  made["HostConfig"]["DeviceRequests"] = nullptr;  // as Podman 4.3 answers
  EXPECT_THAT(difference(*asked, made), HasSubstr("nvidia.com/gpu=GPU-1111"));
  made["HostConfig"].erase("DeviceRequests");
  EXPECT_THAT(difference(*asked, made), HasSubstr("gives the container no GPU"));

  ContainerPlan plan = plan_for(request, rules, GpuWay::kNodes);
  plan.gpu_nodes = {{"/dev/nvidia3", "/dev/nvidia3"}, {"/dev/nvidia4", "/dev/nvidia4"}};
  const auto nodes = create_body(plan);
  ASSERT_TRUE(nodes);
  Json half = *nodes;
  half["HostConfig"]["Devices"].erase(1);
  EXPECT_THAT(difference(*nodes, half), HasSubstr("/dev/nvidia4"));
}

TEST(ContainerGpus, TheNodeInTheContainerMustBeTheGpus) {
  EXPECT_EQ(missing_gpu_node(request_with_gpu(), "/proc"), "/dev/nvidia3");
  EXPECT_EQ(missing_gpu_node({}, "/proc"), "");
}

TEST(ContainerGpus, AProcessThatHasEndedHasNoRootThatMissesAGpu) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  const std::string root = fmt::format("/proc/{}/root", child);
  EXPECT_EQ(missing_gpu_node(request_with_gpu(), root), "") << "a zombie";
  waitpid(child, nullptr, 0);
  EXPECT_EQ(missing_gpu_node(request_with_gpu(), root), "") << "no process";
}

}  // namespace
TEST(ContainerGpus, AnMpsClientHasTheServersPipesAndItsSharedMemory) {
  const std::vector<model::ContainerMount> mounts = mps_mounts(
      {c_text("A=b"), c_text("CUDA_MPS_PIPE_DIRECTORY=/run/gpu-platform-mps/0a/1-1000/pipe")},
      true);
  ASSERT_EQ(mounts.size(), 2U);
  EXPECT_EQ(mounts[0].source, "/run/gpu-platform-mps/0a/1-1000/pipe");
  EXPECT_EQ(mounts[0].target, mounts[0].source);
  EXPECT_EQ(mounts[1].source, "/run/gpu-platform-mps/0a/1-1000/shm");
  EXPECT_EQ(mounts[1].target, "/dev/shm");
  EXPECT_FALSE(mounts[0].read_only || mounts[1].read_only);
  const auto shared =
      mps_mounts({c_text("CUDA_MPS_PIPE_DIRECTORY=/run/gpu-platform-mps/0a/1-1000/pipe")}, false);
  EXPECT_EQ(shared[1].source, "/dev/shm") << "jobs have the host's";
}

TEST(ContainerGpus, AnotherFolderIsNoMpsServers) {
  EXPECT_TRUE(mps_mounts({c_text("A=b")}, true).empty());
  EXPECT_TRUE(mps_mounts({c_text("CUDA_MPS_PIPE_DIRECTORY=/etc/pipe")}, true).empty());
  EXPECT_TRUE(
      mps_mounts({c_text("CUDA_MPS_PIPE_DIRECTORY=/run/gpu-platform-mps/x")}, true).empty());
}

}  // namespace gpu_platform::execution
