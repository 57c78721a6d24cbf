#include "bin/core_part.h"

#include <filesystem>
#include <utility>

#include <gtest/gtest.h>

#include <unistd.h>

#include <future>
#include <string>

#include "bin/cluster_part.h"
#include "bin/fake_access_fixture.h"
#include "bin/folder_fixture.h"
#include "bin/site_policy.h"
#include "model/job_spec.h"

namespace gpu_platform::bin {
namespace {

// Has nothing and does nothing.
class IdleEngine final : public execution::Engine {
 public:
  void start(const execution::StartOrder&) override {}
  void stop(const execution::StopOrder&) override {}
  void set_limit(const execution::LimitOrder&) override {}
  void signal(const execution::SignalOrder&) override {}
  void forget(const execution::ForgetOrder&) override {}
  void reset(const execution::ResetOrder&) override {}
  void adopt(const std::vector<execution::KnownAttempt>&) override {}
};

class CorePartTest : public ::testing::Test {
 protected:
  std::unique_ptr<CorePart> open(const std::string& name = "/data") {
    auto core = CorePart::open({.data_dir = folder_.path() + name}, site_, log_);
    EXPECT_TRUE(core) << core.error().message;
    return core ? *std::move(core) : nullptr;
  }
  base::Status recover(CorePart& core) {
    return core.recover({{model::EngineKind::kProcess, {&engine_, &access_}}}, site_,
                        {policy_of(site_, geteuid()),
                         {},
                         "boot-1",
                         [](const base::Error&) {},
                         [this](std::uint64_t done, std::uint64_t all) { read_ = {done, all}; }});
  }
  static base::Result<model::CommandReply> submit(CorePart& core) {
    model::NodeInfo node;
    node.name = "n1";
    node.boot_id = "boot-1";
    node.cpus = 4;
    node.memory = base::kGiB;
    core.loop().observe(execution::NodeObserved{node});
    model::JobSpec spec;
    spec.user = "ann";
    spec.uid = 1001;
    spec.command = {"true"};
    std::promise<base::Result<model::CommandReply>> reply;
    LoopCommands(core.loop())
        .submit({{.user = "ann", .uid = 1001}, model::SubmitJob{spec, {}}},
                [&](base::Result<model::CommandReply> got) { reply.set_value(got); });
    return reply.get_future().get();
  }

  TestFolder folder_;
  config::Configuration site_;
  logging::Log log_;
  IdleEngine engine_;
  FakeAccess access_;
  std::pair<std::uint64_t, std::uint64_t> read_;  // of the events that a start reads
};

TEST_F(CorePartTest, WhatWasAcknowledgedIsThereAfterTheNextStart) {
  auto core = open();
  ASSERT_TRUE(core != nullptr && recover(*core));
  core->start();
  core->start_retention();
  const auto reply = submit(*core);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(LoopSnapshots(core->loop()).snapshot()->jobs.size(), 1U);
  core->stop();
  EXPECT_EQ(core->snapshot()->jobs.size(), 1U) << "what it hands out stays";
  core.reset();
  core = open();
  ASSERT_TRUE(core != nullptr && recover(*core));
  EXPECT_EQ(core->snapshot()->jobs.size(), 1U);
}

TEST_F(CorePartTest, AStartTellsHowMuchOfTheJournalIsRead) {
  auto core = open();
  ASSERT_TRUE(core != nullptr && recover(*core));
  core->start();
  ASSERT_TRUE(submit(*core));
  // As a crash leaves it: a daemon that is stopped saves its state.
  std::filesystem::copy(folder_.path() + "/data", folder_.path() + "/crashed",
                        std::filesystem::copy_options::recursive);
  core->stop();
  const auto next = open("/crashed");
  ASSERT_TRUE(next != nullptr && recover(*next));
  EXPECT_GT(read_.first, 0U);
  EXPECT_EQ(read_.first, read_.second);
}

TEST_F(CorePartTest, MayStopAtEachStepOfItsStart) {
  auto core = open();
  ASSERT_NE(core, nullptr);
  core->stop();
  core.reset();
  core = open();
  ASSERT_TRUE(core != nullptr && recover(*core));
  core->stop();
  core.reset();
  core = open();
  ASSERT_TRUE(core != nullptr && recover(*core));
  core->start();
  core->stop();
  core->stop();
}

TEST_F(CorePartTest, OnlyOneHasTheStore) {
  const auto core = open();
  ASSERT_NE(core, nullptr);
  const auto second = CorePart::open({.data_dir = folder_.path() + "/data"}, site_, log_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, base::ErrorCode::kAlreadyExists);
}

TEST_F(CorePartTest, HasTheRulesOfAccessOnceItIsRecovered) {
  const auto core = open();
  ASSERT_TRUE(core != nullptr && recover(*core));
  EXPECT_NE(core->access(), nullptr);
}

TEST_F(CorePartTest, APartForAClusterIsEmptyWhereTheSiteNamesNone) {
  const auto core = open();
  ASSERT_NE(core, nullptr);
  const auto opened = ClusterPart::open({}, site_, *core);
  ASSERT_TRUE(opened);
  ClusterPart& cluster = **opened;
  EXPECT_TRUE(cluster.is_empty());
  EngineTable engines;
  cluster.add_engine(engines);
  EXPECT_TRUE(engines.empty());
  cluster.connect();
  EXPECT_TRUE(cluster.start(site_));
  cluster.wait_for_nodes({});
  cluster.warn_of_what_is_missing(site_);
  cluster.stop();
}

TEST_F(CorePartTest, AClusterThatCannotBeReachedNamesTheKeyAtFault) {
  const auto core = open();
  ASSERT_NE(core, nullptr);
  site_.kubernetes_kubeconfig.path = folder_.path() + "/none";
  const auto cluster = ClusterPart::open({}, site_, *core);
  ASSERT_FALSE(cluster);
  EXPECT_TRUE(cluster.error().message.starts_with("engines.kubernetes.kubeconfig: "))
      << cluster.error().message;
}

}  // namespace
}  // namespace gpu_platform::bin
