#include "execution/process/job_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/job_spec.h"
#include "node/protocol.h"

namespace gpu_platform::execution {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

StartOrder an_order() {
  auto spec = std::make_shared<model::JobSpec>();
  spec->name = "train";
  spec->command = {"python", "a b"};
  spec->workdir = "/data";
  StartOrder order;
  order.attempt = {model::JobId(42), 2};
  order.spec = spec;
  order.boot_id = "boot";
  LaunchNode node{model::NodeId(1), "dgx-1", true, {}, 16, base::kGiB, {}};
  node.gpus.resize(2);
  node.gpus[0].info.uuid = "GPU-a";
  node.gpus[1].info.uuid = "GPU-b";
  node.gpus[1].grant.gpu_index = 3;
  node.gpus[1].driver_index = 3;
  order.nodes = {node};
  return order;
}

UserIdentity a_user() {
  return {"ann", "/home/ann", "/bin/zsh", 1000};
}

std::string submitted(std::initializer_list<std::string_view> entries) {
  std::string bytes;
  for (const std::string_view entry : entries) bytes.append(entry).push_back('\0');
  return bytes;
}

TEST(JobEnvironment, TellsTheJobWhatItGot) {
  const auto environment = job_environment(an_order(), {}, a_user());
  for (const char* entry :
       {"CUDA_VISIBLE_DEVICES=0,3", "GPU_PLATFORM_GPU_UUIDS=GPU-a,GPU-b",
        "CUDA_DEVICE_ORDER=PCI_BUS_ID", "GPU_PLATFORM_JOB_ID=42", "GPU_PLATFORM_ATTEMPT=2",
        "GPU_PLATFORM_JOB_NAME=train", "GPU_PLATFORM_NODE=dgx-1", "GPU_PLATFORM_GPUS=0,3",
        "GPU_PLATFORM_CPUS=16", "GPU_PLATFORM_MEMORY_BYTES=1073741824"}) {
    EXPECT_THAT(environment, Contains(entry));
  }
}

TEST(JobEnvironment, TellsAJobWithAPartItsWalls) {
  EXPECT_THAT(job_environment(an_order(), {}, a_user()),
              Not(Contains(StartsWith("GPU_PLATFORM_SHARE"))));
  StartOrder order = an_order();
  order.nodes[0].gpus.resize(1);
  model::GpuGrant& grant = order.nodes[0].gpus[0].grant;
  grant.share = base::GpuShare(1750);
  grant.memory = base::kGiB * 20;
  grant.mode = model::ShareMode::kTimeSlice;
  grant.wall = {model::Rung::kWatchdog, model::Rung::kFrozen};
  EXPECT_THAT(job_environment(order, submitted({"GPU_PLATFORM_SHARE=1"}), a_user()),
              IsSupersetOf({"GPU_PLATFORM_SHARE=0.25", "GPU_PLATFORM_SHARE_MODE=time-slice",
                            "GPU_PLATFORM_GPU_MEMORY=21474836480",
                            "GPU_PLATFORM_ISOLATION=memory=watchdog,compute=time-slice"}));
}

// One GPU of which it has a part as a client of an MPS server.
StartOrder an_mps_order() {
  StartOrder order = an_order();
  order.nodes[0].emulated = false;
  order.nodes[0].gpus.erase(order.nodes[0].gpus.begin());
  order.nodes[0].gpus[0].grant.mode = model::ShareMode::kMps;
  order.nodes[0].gpus[0].grant.share = base::GpuShare(3500);
  return order;
}
const MpsClient kMpsClient{"GPU-b", "/usr/bin/nvidia-cuda-mps-control", "/run/gpu-platform-mps/a/b",
                           50, 20'480};

TEST(JobEnvironment, AnMpsClientFindsItsServerAndItsLimits) {
  const auto environment =
      job_environment(an_mps_order(),
                      submitted({"CUDA_MPS_PIPE_DIRECTORY=/mine", "CUDA_MPS_LOG_DIRECTORY=/mine",
                                 "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=100",
                                 "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=80G"}),
                      a_user(), {}, {}, kMpsClient);
  EXPECT_THAT(environment, IsSupersetOf({"CUDA_MPS_PIPE_DIRECTORY=/run/gpu-platform-mps/a/b/pipe",
                                         "CUDA_MPS_LOG_DIRECTORY=/run/gpu-platform-mps/a/b/log",
                                         "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50",
                                         "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=20480M"}));
  EXPECT_THAT(environment, Not(Contains(HasSubstr("/mine")))) << "the user's own do not win";
  EXPECT_THAT(environment, Contains("CUDA_VISIBLE_DEVICES=0"))
      << "the server has one GPU, the driver's GPU 3";
}

TEST(JobEnvironment, AJobOfAnMpsClientIsNoClientOfThatServer) {
  const std::string inherited = submitted({"CUDA_MPS_PIPE_DIRECTORY=/run/gpu-platform-mps/a/b/pipe",
                                           "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50"});
  EXPECT_THAT(job_environment(an_order(), inherited, a_user()),
              Not(Contains(StartsWith("CUDA_MPS_"))));
  EXPECT_THAT(job_environment(an_order(), submitted({"CUDA_MPS_PIPE_DIRECTORY=/mine"}), a_user()),
              Contains("CUDA_MPS_PIPE_DIRECTORY=/mine"))
      << "a job may have a daemon of its own";
}

TEST(JobEnvironment, CountsGpusFromZeroWhereTheJobSeesNoOthers) {
  const CudaOptions hidden{.hides_others = true};
  EXPECT_THAT(job_environment(an_order(), {}, a_user(), {}, hidden),
              Contains("CUDA_VISIBLE_DEVICES=0,3"))
      << "an emulated board shows all of its GPUs";
  StartOrder real = an_order();
  real.nodes[0].emulated = false;
  EXPECT_THAT(job_environment(real, {}, a_user(), {}, hidden),
              Contains("CUDA_VISIBLE_DEVICES=0,1"));
  EXPECT_THAT(job_environment(real, {}, a_user()), Contains("CUDA_VISIBLE_DEVICES=0,3"));
  StartOrder in_container = an_order();
  auto with_image = std::make_shared<model::JobSpec>(*in_container.spec);
  with_image->image = "docker.io/library/debian";
  in_container.spec = with_image;
  EXPECT_THAT(job_environment(in_container, {}, a_user()),
              IsSupersetOf({"CUDA_VISIBLE_DEVICES=0,1", "CUDA_DEVICE_ORDER=PCI_BUS_ID"}));
}

TEST(JobEnvironment, NamesGpusByTheirUuidsIfTheSiteWantsThat) {
  const auto environment =
      job_environment(an_order(), {}, a_user(), {}, {.names = CudaNames::kUuid});
  EXPECT_THAT(environment, Contains("CUDA_VISIBLE_DEVICES=GPU-a,GPU-b"));
}

TEST(JobEnvironment, AJobOnAnEmulatedNodeSeesItsBoard) {
  const BoardPlaces places{"/data/emulated", "/lib/emulator", "/libexec/emulated"};
  EXPECT_THAT(job_environment(an_order(), {}, a_user(), places),
              IsSupersetOf({"GPU_EMULATOR_STATE=/data/emulated/dgx-1/state",
                            "LD_LIBRARY_PATH=/lib/emulator", "GPU_PLATFORM_EMULATED_NODES=dgx-1"}));
  EXPECT_THAT(job_environment(an_order(), submitted({"PATH=/mine"}), a_user(), places),
              Contains("PATH=/libexec/emulated:/mine"));
  EXPECT_THAT(job_environment(an_order(), {}, a_user(), places),
              Contains(StartsWith("PATH=/libexec/emulated:/")));
  EXPECT_THAT(job_environment(an_order(), submitted({"LD_LIBRARY_PATH=/mine"}), a_user(), places),
              Contains("LD_LIBRARY_PATH=/lib/emulator:/mine"));
  StartOrder on_real_gpus = an_order();
  on_real_gpus.nodes[0].emulated = false;
  const auto real = job_environment(on_real_gpus, {}, a_user(), places);
  EXPECT_THAT(real, Not(Contains(HasSubstr("LD_LIBRARY_PATH"))));
  EXPECT_THAT(real, Not(Contains(HasSubstr("GPU_EMULATOR"))));
  EXPECT_THAT(real, Not(Contains(HasSubstr("/libexec/emulated")))) << "it would hide NVIDIA's own";
  StartOrder in_container = an_order();
  auto with_image = std::make_shared<model::JobSpec>(*in_container.spec);
  with_image->image = "docker.io/library/debian";
  in_container.spec = with_image;
  EXPECT_THAT(job_environment(in_container, {}, a_user(), places),
              Not(Contains(StartsWith("PATH="))));
}

TEST(JobEnvironment, CpuJobSeesNoGpu) {
  StartOrder order = an_order();
  order.nodes[0].gpus.clear();
  EXPECT_THAT(job_environment(order, {}, a_user()), Contains("CUDA_VISIBLE_DEVICES="));
}

TEST(JobEnvironment, OursWinOverTheCallers) {
  const auto environment = job_environment(
      an_order(), submitted({"CUDA_VISIBLE_DEVICES=0,1,2", "GPU_PLATFORM_JOB_ID=1"}), a_user());
  EXPECT_THAT(environment, Contains("CUDA_VISIBLE_DEVICES=0,3"));
  EXPECT_THAT(environment, Contains("GPU_PLATFORM_JOB_ID=42"));
  EXPECT_THAT(environment, Not(Contains("CUDA_VISIBLE_DEVICES=0,1,2")));
}

TEST(JobEnvironment, OuterJobsVariablesAreNotPassedOn) {
  const auto environment = job_environment(
      an_order(), submitted({"GPU_PLATFORM_SOMETHING=x", "GPU_PLATFORM_SERVER=unix:/s"}), a_user());
  EXPECT_THAT(environment, Not(Contains(HasSubstr("SOMETHING"))));
  EXPECT_THAT(environment, Contains("GPU_PLATFORM_SERVER=unix:/s"));
}

TEST(JobEnvironment, LoginVariablesOnlyFillGaps) {
  const auto environment = job_environment(an_order(), submitted({"HOME=/elsewhere"}), a_user());
  EXPECT_THAT(environment, Contains("HOME=/elsewhere"));
  EXPECT_THAT(environment, Contains("USER=ann"));
  EXPECT_THAT(environment, Contains("LOGNAME=ann"));
  EXPECT_THAT(environment, Contains("SHELL=/bin/zsh"));
}

// Two nodes of two GPUs each.
StartOrder a_gang() {
  StartOrder order = an_order();
  auto spec = std::make_shared<model::JobSpec>(*order.spec);
  spec->request.nodes = 2;
  spec->request.memory = base::kGiB;
  order.spec = spec;
  order.stop_grace = base::seconds(3);
  LaunchNode second{model::NodeId(2), "dgx-2", true, {}, 16, base::kGiB, {}};
  second.gpus.resize(2);
  second.gpus[0].info.uuid = "GPU-c";
  second.gpus[1].info.uuid = "GPU-d";
  second.gpus[0].grant.gpu_index = 1;
  second.gpus[1].grant.gpu_index = 2;
  for (LaunchGpu& gpu : second.gpus) gpu.driver_index = gpu.grant.gpu_index;
  order.nodes.push_back(second);
  return order;
}

std::vector<std::string> command_in(const StartOrder& order) {
  RequestOptions options;
  options.node_program = "/lib/gpu-platform-node";
  const auto encoded = launch_request(order, {}, a_user(), options);
  const auto request = node::decode_request(*encoded);
  std::vector<std::string> words;
  for (const std::string_view word : request->command) words.emplace_back(word.data());
  return words;
}

TEST(Ranks, AGangIsStartedOnceForEachNode) {
  const std::vector<std::string> command = command_in(a_gang());
  ASSERT_EQ(command.size(), 8U);
  EXPECT_EQ(command[0], "/lib/gpu-platform-node");
  EXPECT_EQ(command[1], "ranks");
  EXPECT_EQ(command[2], "3000");
  EXPECT_THAT(command[3], HasSubstr("NODE_RANK=0"));
  EXPECT_THAT(command[3], HasSubstr("CUDA_VISIBLE_DEVICES=0,3"));
  EXPECT_THAT(command[4], HasSubstr("NODE_RANK=1"));
  EXPECT_THAT(command[4], HasSubstr("CUDA_VISIBLE_DEVICES=1,2"));
  EXPECT_THAT(command[4], HasSubstr("GPU_PLATFORM_NODE=dgx-2"));
  EXPECT_EQ(command[5], "--");
  EXPECT_EQ(command[6], "python");
}

TEST(Ranks, OfTheFirstNodeOnlyAreOneProcessThatKnowsTheOthers) {
  StartOrder order = a_gang();
  auto spec = std::make_shared<model::JobSpec>(*order.spec);
  spec->first_node_only = true;
  order.spec = spec;
  EXPECT_EQ(command_in(order).front(), "python");
  const auto environment = job_environment(order, {}, a_user(), {"/data/emulated", "/lib"});
  EXPECT_THAT(
      environment,
      IsSupersetOf({"GPU_PLATFORM_NODE=dgx-1", "CUDA_VISIBLE_DEVICES=0,3", "GPU_PLATFORM_CPUS=16",
                    "NODE_RANK=0", "NNODES=2", "GPU_PLATFORM_NODELIST=dgx-1,dgx-2",
                    "GPU_PLATFORM_NODE_0_CUDA_VISIBLE_DEVICES=0,3",
                    "GPU_PLATFORM_NODE_1_CUDA_VISIBLE_DEVICES=1,2",
                    "GPU_PLATFORM_NODE_1_GPU_PLATFORM_GPU_UUIDS=GPU-c,GPU-d",
                    "GPU_PLATFORM_NODE_1_GPU_PLATFORM_NODE=dgx-2",
                    "GPU_PLATFORM_NODE_1_GPU_PLATFORM_CPUS=16",
                    "GPU_PLATFORM_NODE_1_GPU_EMULATOR_STATE=/data/emulated/dgx-2/state"}));
}

TEST(Ranks, PerGpuThereIsOneForEachGpuOfEachNode) {
  StartOrder order = a_gang();
  auto spec = std::make_shared<model::JobSpec>(*order.spec);
  spec->per_gpu = true;
  order.spec = spec;
  const std::vector<std::string> command = command_in(order);
  ASSERT_EQ(command.size(), 10U);
  EXPECT_THAT(command[6], HasSubstr("\nRANK=3\nLOCAL_RANK=1\nLOCAL_WORLD_SIZE=2"));
  EXPECT_THAT(job_environment(order, {}, a_user()), Contains("WORLD_SIZE=4"));
}

TEST(Ranks, HaveAMasterThatTheUserMayChoose) {
  const auto given = job_environment(a_gang(), {}, a_user());
  for (const char* entry :
       {"NNODES=2", "MASTER_ADDR=127.0.0.1", "GPU_PLATFORM_NODELIST=dgx-1,dgx-2"}) {
    EXPECT_THAT(given, Contains(entry));
  }
  EXPECT_THAT(job_environment(a_gang(), submitted({"MASTER_PORT=1234"}), a_user()),
              Contains("MASTER_PORT=1234"));
  EXPECT_THAT(job_environment(an_order(), {}, a_user()), Not(Contains(HasSubstr("NNODES"))));
}

TEST(Ranks, OfAllNodesTogetherHaveTheMemoryThatEachWasAskedFor) {
  RequestOptions options;
  options.node_program = "/lib/gpu-platform-node";
  const auto encoded = launch_request(a_gang(), {}, a_user(), options);
  ASSERT_TRUE(encoded.has_value()) << encoded.error().message;
  const auto request = node::decode_request(*encoded);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->memory_bytes, std::uint64_t{2} << 30);
}

TEST(JobEnvironment, NothingOfSlurmIsMadeUp) {
  EXPECT_THAT(job_environment(an_order(), {}, a_user()), Not(Contains(HasSubstr("SLURM"))));
}

TEST(JobEnvironment, EntriesWithoutNameAreDropped) {
  const auto environment =
      job_environment(an_order(), submitted({"=x", "novalue", "OK=1", "OK=2", "EMPTY="}), a_user());
  EXPECT_THAT(environment, Not(Contains("=x")));
  EXPECT_THAT(environment, Not(Contains("novalue")));
  EXPECT_THAT(environment, Contains("OK=1"));
  EXPECT_THAT(environment, Not(Contains("OK=2")));
  EXPECT_THAT(environment, Contains("EMPTY="));
}

TEST(LaunchRequestOf, CarriesTheOrder) {
  StartOrder order = an_order();
  order.time_limit = base::nanoseconds(1);
  order.stop_grace = base::seconds(30);
  const auto encoded = launch_request(order, {}, a_user(), {1000, 2, 50, true});
  ASSERT_TRUE(encoded.has_value());
  const auto request = node::decode_request(*encoded);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->boot_id, "boot");
  EXPECT_EQ(request->user.uid, 1000u);
  EXPECT_STREQ(request->command[1].data(), "a b");
  EXPECT_STREQ(request->workdir.data(), "/data");
  EXPECT_EQ(request->time_limit_ms, 1u);  // rounded up: zero would mean none
  EXPECT_EQ(request->grace_ms, 30'000u);
}

TEST(LaunchRequestOf, NamesTheMpsServerOfAClient) {
  RequestOptions options;
  options.output_file_bytes = 1000;
  options.mps = kMpsClient;
  const auto encoded = launch_request(an_mps_order(), {}, a_user(), options);
  ASSERT_TRUE(encoded.has_value());
  const auto request = node::decode_request(*encoded);
  ASSERT_TRUE(request.has_value());
  EXPECT_STREQ(request->mps_gpu.data(), "GPU-b");
  EXPECT_STREQ(request->mps_program.data(), "/usr/bin/nvidia-cuda-mps-control");
  EXPECT_NE(encoded->find("CUDA_MPS_PIPE_DIRECTORY=/run/gpu-platform-mps/a/b/pipe"),
            std::string::npos);
  options.mps.reset();
  const auto without = launch_request(an_order(), {}, a_user(), options);
  EXPECT_EQ(node::decode_request(*without)->mps_gpu, std::string_view("\0", 1));
}

TEST(LaunchRequestOf, NamesTheBoundsOfTheJob) {
  StartOrder order = an_order();
  LaunchNode& node = order.nodes[0];
  node.emulated = false;
  node.gpus[0].info.minor = 5;
  node.gpus[1].info.minor = 2;
  node.near = {{.id = 0, .cpus = "0-3,8"}, {.id = 2, .cpus = "4-7"}};
  auto spec = *order.spec;
  spec.request.memory = base::kGiB;
  order.spec = std::make_shared<model::JobSpec>(spec);
  const auto encoded = launch_request(order, {}, a_user(), {1000, 2, 50, true});
  ASSERT_TRUE(encoded.has_value());
  const auto request = node::decode_request(*encoded);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->devices, (std::vector<node::DeviceNumber>{{195, 5}, {195, 2}}));
  EXPECT_EQ(request->memory_bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(request->max_processes, 50u);
  EXPECT_EQ(request->cpus, 16u);
  EXPECT_EQ(request->near_cpus, "0-3,8,4-7");
  EXPECT_EQ(request->near_nodes, "0,2");
  EXPECT_TRUE(request->private_folders);
}

TEST(LaunchRequestOf, LimitsMemoryOnlyWhereItWasAskedFor) {
  const auto encoded = launch_request(an_order(), {}, a_user(), {1000, 2});
  ASSERT_TRUE(encoded.has_value());
  EXPECT_EQ(node::decode_request(*encoded)->memory_bytes, 0u);
}

TEST(LaunchRequestOf, CpusOfABoardAreNotTheHosts) {
  StartOrder order = an_order();
  order.nodes[0].near = {{.id = 1, .cpus = "56-111"}};
  const auto encoded = launch_request(order, {}, a_user(), {1000, 2});
  ASSERT_TRUE(encoded.has_value());
  EXPECT_EQ(node::decode_request(*encoded)->near_cpus, "");
}

TEST(LaunchRequestOf, TemporaryFolderIsTheOneThatWasAskedFor) {
  const std::string environment = submitted({"TMPDIR=/tmp/mine", "TMP=/tmp/other"});
  for (const bool hidden : {true, false}) {
    const auto encoded = launch_request(an_order(), environment, a_user(), {1000, 2, 0, hidden});
    ASSERT_TRUE(encoded.has_value());
    EXPECT_NE(encoded->find("TMPDIR=/tmp/mine"), std::string::npos) << hidden;
  }
}

TEST(LaunchRequestOf, HooksAreFilesNeverLookedUpInPath) {
  StartOrder order = an_order();
  auto spec = *order.spec;
  spec.prolog = "before";
  spec.epilog = "bin/after";
  order.spec = std::make_shared<model::JobSpec>(spec);
  const auto encoded = launch_request(order, {}, a_user(), {1000, 2});
  ASSERT_TRUE(encoded.has_value());
  const auto request = node::decode_request(*encoded);
  EXPECT_EQ(request->prolog, std::string_view("./before\0", 9));
  EXPECT_EQ(request->epilog, std::string_view("bin/after\0", 10));
  const auto without = launch_request(an_order(), {}, a_user(), {1000, 2});
  EXPECT_EQ(node::decode_request(*without)->prolog, std::string_view("\0", 1));
}

TEST(LaunchRequestOf, TooLargeAnEnvironmentIsRefusedByItsSize) {
  const auto encoded =
      launch_request(an_order(), "A=" + std::string(node::kMaxRequest, 'x'), a_user(), {});
  ASSERT_FALSE(encoded.has_value());
  EXPECT_EQ(encoded.error().code, base::ErrorCode::kResourceExhausted);
}

TEST(LaunchRequestOf, NulInTheCommandIsRefused) {
  StartOrder order = an_order();
  auto spec = *order.spec;
  spec.command = {std::string("a\0b", 3)};
  order.spec = std::make_shared<model::JobSpec>(spec);
  EXPECT_FALSE(launch_request(order, {}, a_user(), {}).has_value());
}

}  // namespace
}  // namespace gpu_platform::execution
