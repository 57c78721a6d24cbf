#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/rest/server_fixture_test.h"

// Questions about what would be, over the wire.

namespace gpu_platform::api {
namespace {

using PlanningTest = ServerTest;

TEST_F(PlanningTest, NeedsOfAServerFollowItsSettings) {
  start();
  const auto needs = parsed(ask("POST", "/v1/estimate",
                                R"({"model":"llama-3-70b","settings":[
                                    {"name":"tp-size","values":["1","2","4"]},
                                    {"name":"seed","values":["1"]}]})"));
  EXPECT_EQ(needs["gpus"], 4);
  EXPECT_EQ(needs["gpu_memory_bytes"], 20'000'000'000);
  EXPECT_EQ(needs["rule"], "by_name");
  EXPECT_EQ(needs["parameters"], 70'553'706'496);
  EXPECT_EQ(needs["weights_bytes"], 35'276'853'248);
  EXPECT_GT(needs["ask_gpu_memory_bytes"], 35'276'853'248 / 0.9);
  EXPECT_EQ(needs["engine"], "vllm");
  EXPECT_EQ(needs["unused"][0], "seed");
}

TEST_F(PlanningTest, NeedsOfAServerAreReadFromItsCommand) {
  start();
  const auto needs = parsed(ask(
      "POST", "/v1/estimate",
      R"({"command":["vllm","serve","llama-3-70b","--tensor-parallel-size","4","--dtype","bf16"]})"));
  EXPECT_EQ(needs["rule"], "computed");
  EXPECT_EQ(needs["model"], "llama-3-70b");
  EXPECT_EQ(needs["weights_bytes"], 35'276'853'248);
  EXPECT_EQ(needs["cache_bytes"], 671'088'640);
  EXPECT_EQ(needs["weight_bits"], 16.0);
}

TEST_F(PlanningTest, NeedsOfAServerSayWhatTheGpusHereHold) {
  core_.edit_node([](model::Node& node) {
    node.gpus.resize(1);
    for (int i = 0; i < 4; ++i) {
      model::Gpu gpu;
      gpu.info.type = "H100-80GB";
      gpu.info.memory = base::kGiB * 80;
      node.gpus.push_back(gpu);
    }
    node.gpus.back().is_reported = false;
    node.gpus.erase(node.gpus.begin());
  });
  start();
  const auto needs = parsed(
      ask("POST", "/v1/estimate", R"({"command":["vllm","serve","llama-3-8b","--dp","6"]})"));
  ASSERT_EQ(needs["holdings"].size(), 1U);
  const auto& holding = needs["holdings"][0];
  EXPECT_EQ(holding["gpu_type"], "H100-80GB");
  EXPECT_EQ(holding["gpus_per_node"], 3);
  EXPECT_EQ(holding["fits"], true);
  EXPECT_EQ(holding["contexts"], 53);
  EXPECT_EQ(holding["nodes"], 2);
  EXPECT_EQ(holding["gpus"], 6);
  EXPECT_EQ(holding["tensor_parallel"], 1);
  EXPECT_EQ(needs["nodes"], 2);
}

TEST_F(PlanningTest, ModelOfUnknownSizeHasNoMemory) {
  start();
  const auto needs = parsed(
      ask("POST", "/v1/estimate", R"({"model":"mine","settings":[{"name":"tp","values":["4"]}]})"));
  EXPECT_EQ(needs["rule"], "unknown");
  EXPECT_EQ(needs["gpus"], 4);
  EXPECT_TRUE(needs["gpu_memory_bytes"].is_null() && needs["ask_gpu_memory_bytes"].is_null());
  const RawResponse bare = ask("POST", "/v1/estimate", R"({"model":"mine"})");
  EXPECT_EQ(bare.status, 400);
  EXPECT_EQ(parsed(bare)["field"], "model");
}

TEST_F(PlanningTest, NeedsOfNothingAreRefused) {
  start();
  EXPECT_EQ(parsed(ask("POST", "/v1/estimate", "{}"))["field"], "settings");
  EXPECT_EQ(parsed(ask("POST", "/v1/estimate", R"({"model":"m","command":["x"]})"))["field"],
            "command");
  const RawResponse bad =
      ask("POST", "/v1/estimate", R"({"settings":[{"name":"tp_size","values":["0"]}]})");
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(parsed(bad)["field"], "tp_size");
}

TEST_F(PlanningTest, AWaitingJobIsExplained) {
  const model::JobId job = core_.add_job(user_, uid_);
  core_.edit_node([](model::Node& node) {
    for (model::Gpu& gpu : node.gpus) gpu.state = model::GpuState::kDraining;
  });
  start();
  const auto found = parsed(ask("GET", fmt::format("/v1/jobs/{}/explanation", job.value)));
  EXPECT_EQ(found["job"]["id"], std::to_string(job.value));
  EXPECT_EQ(found["jobs_ahead"], 0);
  EXPECT_TRUE(found["counterfactuals"].is_array());
  EXPECT_EQ(ask("GET", "/v1/jobs/99/explanation").status, 404);
  EXPECT_EQ(ask("GET", "/v1/jobs/x/explanation").status, 400);
}

TEST_F(PlanningTest, AJobThatWouldStartIsToldItsPlace) {
  start();
  const auto found = parsed(ask("POST", "/v1/check", R"({"spec":{"command":["x"],"gpus":2}})"));
  EXPECT_EQ(found["starts_now"], true);
  EXPECT_EQ(found["never"], false);
  EXPECT_EQ(found["gpus"].size(), 2U);
  EXPECT_EQ(found["nodes"][0], "dgx-h100-1");
  EXPECT_EQ(found["reasons"].size(), 0U);
  EXPECT_EQ(core_.commands().size(), 1U);
  EXPECT_TRUE(std::get<model::SubmitJob>(core_.commands()[0].body).dry_run);
}

TEST_F(PlanningTest, AJobThatWouldWaitIsToldWhyAndWhatWouldHelp) {
  core_.edit_node([](model::Node& node) {
    for (std::size_t i = 0; i < 6; ++i) node.gpus[i].state = model::GpuState::kInUse;
  });
  start();
  const auto found = parsed(ask("POST", "/v1/check", R"({"spec":{"command":["x"],"gpus":4}})"));
  EXPECT_EQ(found["starts_now"], false);
  EXPECT_EQ(found["reasons"][0], "1 node is 2 GPUs short");
  EXPECT_EQ(found["counterfactuals"][0]["change"], "gpus");
  EXPECT_EQ(found["counterfactuals"][0]["option"], "--gpus 2");
  EXPECT_TRUE(found["estimated_start"].is_null());
}

TEST_F(PlanningTest, ABadJobIsRefusedAsItsSubmissionWouldBe) {
  start();
  const RawResponse refused =
      ask("POST", "/v1/check", R"({"spec":{"command":["x"],"gpus":1,"priority":"urgent"}})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(parsed(refused)["field"], "priority");
}

TEST_F(PlanningTest, TheAnswerIsHeldBackUntilTheJobWouldStart) {
  core_.edit_node([](model::Node& node) {
    for (model::Gpu& gpu : node.gpus) gpu.state = model::GpuState::kInUse;
  });
  start();
  std::thread later([this] {
    core_.wait_for_command();
    core_.edit_node([](model::Node& node) { node.gpus[5].state = model::GpuState::kAvailable; });
  });
  const auto found = parsed(
      ask("POST", "/v1/check", R"({"spec":{"command":["x"],"gpus":1},"timeout_seconds":60})"));
  later.join();
  EXPECT_EQ(found["starts_now"], true);
  EXPECT_EQ(found["gpus"][0]["index"], 5);
}

TEST_F(PlanningTest, TheAnswerComesWhenTheTimeIsUp) {
  core_.edit_node([](model::Node& node) { node.state = model::NodeState::kDraining; });
  start();
  const auto found = parsed(
      ask("POST", "/v1/check", R"({"spec":{"command":["x"],"gpus":1},"timeout_seconds":0.05})"));
  EXPECT_EQ(found["starts_now"], false);
}

}  // namespace
}  // namespace gpu_platform::api
