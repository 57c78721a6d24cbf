// Jobs of several processes: on several emulated nodes of this host, or one for each GPU.

#include <fstream>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "harness.h"

namespace gpu_platform::e2e {
namespace {

using Lines = std::multiset<std::string>;

class Gang : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon_.start()) << daemon_.log(); }

  std::string submit(std::vector<std::string> options, const std::string& script) {
    options.insert(options.end(), {"--", "/bin/sh", "-c", script});
    return daemon_.submit(std::move(options));
  }
  nlohmann::json ended(const std::string& id) {
    EXPECT_TRUE(eventually([&] { return !daemon_.job(id)["ended_at"].is_null(); }))
        << daemon_.job(id);
    return daemon_.job(id);
  }
  Lines output(const std::string& id) {
    std::istringstream text(daemon_.cli({"jobs", "logs", id}).out);
    Lines lines;
    for (std::string line; std::getline(text, line);) lines.insert(line);
    return lines;
  }

  Daemon daemon_{{.emulate = "4xdgx-h100"}};
};

TEST_F(Gang, RunsOnceOnEachNodeWithThatNodesGpus) {
  const std::string id = submit({"--gpus", "16", "--nodes", "2"},
                                "echo $NODE_RANK of $NNODES at $MASTER_ADDR with "
                                "$(echo $CUDA_VISIBLE_DEVICES | tr , '\\n' | wc -l); "
                                "test -n \"$MASTER_PORT\"");
  const auto job = ended(id);
  EXPECT_EQ(job["state"], "COMPLETED") << job;
  EXPECT_EQ(job["gpus"].size(), 16U);
  EXPECT_EQ(output(id), (Lines{"0 of 2 at 127.0.0.1 with 8", "1 of 2 at 127.0.0.1 with 8"}));
}

TEST_F(Gang, RunsOnceOnEachGpuWhereAsked) {
  const std::string id = submit({"--gpus-per-node", "2", "--nodes", "2", "--per-gpu"},
                                "echo $RANK/$WORLD_SIZE $NODE_RANK $LOCAL_RANK");
  EXPECT_EQ(ended(id)["state"], "COMPLETED");
  EXPECT_EQ(output(id), (Lines{"0/4 0 0", "1/4 0 1", "2/4 1 0", "3/4 1 1"}));
}

TEST_F(Gang, RunsOnItsFirstNodeOnlyWhereAsked) {
  const std::string id =
      submit({"--gpus-per-node", "2", "--nodes", "2", "--first-node-only"},
             "echo $NODE_RANK of $NNODES; test $GPU_PLATFORM_NODE_0_GPU_PLATFORM_NODE != "
             "$GPU_PLATFORM_NODE_1_GPU_PLATFORM_NODE");
  const auto job = ended(id);
  EXPECT_EQ(job["state"], "COMPLETED") << job;
  EXPECT_EQ(job["gpus"].size(), 4U);
  EXPECT_EQ(output(id), (Lines{"0 of 2"}));
}

TEST_F(Gang, TheFirstProcessThatFailsEndsTheOthers) {
  const std::string id = submit({"--nodes", "3", "--gpus-per-node", "1"},
                                "[ $NODE_RANK = 1 ] && exit 7; while :; do sleep 0.2; done");
  const auto job = ended(id);
  EXPECT_EQ(job["state"], "FAILED") << job;
  EXPECT_EQ(job["exit_code"], 7) << job;
}

TEST_F(Gang, IsCancelledWhole) {
  const std::string id =
      submit({"--nodes", "2", "--gpus-per-node", "8"}, "echo up; while :; do sleep 0.2; done");
  EXPECT_TRUE(eventually([&] { return output(id).size() == 2; }));
  EXPECT_EQ(daemon_.cli({"jobs", "cancel", id}).exit_code, 0);
  EXPECT_EQ(ended(id)["state"], "CANCELLED");
  const std::string next = submit({"--nodes", "4", "--gpus-per-node", "8"}, "true");
  EXPECT_EQ(ended(next)["state"], "COMPLETED");
}

TEST_F(Gang, LiesAcrossAsFewNodesAsCanBe) {
  const std::string id = submit({"--gpus", "24", "--allow-cross-node"}, "true");
  const auto job = ended(id);
  EXPECT_EQ(job["attempts"][0]["nodes"].size(), 3U) << job;
}

TEST_F(Gang, WhatTheClusterCannotHoldIsRefusedWithWhatItCould) {
  const Finished refused =
      daemon_.cli({"submit", "--nodes", "5", "--gpus-per-node", "8", "--", "true"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("at most 4 nodes can each give 8 GPUs"), std::string::npos)
      << refused.err;
}

TEST_F(Gang, NodesAreNamedOrLeftOut) {
  const auto nodes = nlohmann::json::parse(daemon_.cli({"status", "--json"}).out)["nodes"];
  const std::string first = nodes[0]["name"];
  const auto on = ended(submit({"--gpus", "1", "--nodelist", first}, "true"));
  EXPECT_EQ(on["attempts"][0]["nodes"][0], first);
  EXPECT_EQ(on["spec"]["nodelist"], nlohmann::json::array({first}));
  const auto off = ended(submit({"--gpus", "1", "--exclude", first}, "true"));
  EXPECT_NE(off["attempts"][0]["nodes"][0], first);
  const Finished refused = daemon_.cli({"submit", "--nodelist", "nowhere", "--", "true"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.err.find("there is no node 'nowhere'"), std::string::npos) << refused.err;
}

TEST(GangNetwork, LiesWithinOneRackOfTheSitesFile) {
  TemporaryDirectory site;
  const std::string file = site.path() + "/network";
  Daemon probe({.emulate = "4xdgx-h100"});
  ASSERT_TRUE(probe.start()) << probe.log();
  const auto nodes = nlohmann::json::parse(probe.cli({"status", "--json"}).out)["nodes"];
  ASSERT_EQ(nodes.size(), 4U);
  std::vector<std::string> names;
  for (const auto& node : nodes) names.push_back(node["name"]);
  EXPECT_EQ(probe.terminate(), 0);
  std::ofstream(file) << names[0] << "," << names[2] << " rack=a\n" << names[1] << " rack=b\n";

  Daemon daemon({.emulate = "4xdgx-h100", .config = "cluster:\n  network_file: " + file + "\n"});
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const Finished submitted = daemon.cli(
      {"submit", "--nodes", "2", "--gpus-per-node", "8", "--network-level", "rack", "--", "true"});
  ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  const std::string id = submitted.out.substr(0, submitted.out.find('\n'));
  ASSERT_TRUE(eventually([&] { return !daemon.job(id)["started_at"].is_null(); }));
  // Nodes count from when they were first known, which is not the same in two daemons.
  const std::set<std::string> on = daemon.job(id)["attempts"][0]["nodes"];
  EXPECT_EQ(on, (std::set{names[0], names[2]}));
}

}  // namespace
}  // namespace gpu_platform::e2e
