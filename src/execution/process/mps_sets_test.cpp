#include "execution/process/mps_sets.h"

#include <gtest/gtest.h>

#include "model/job_spec.h"

namespace gpu_platform::execution {
namespace {

constexpr std::uint32_t kUid = 1000;
constexpr base::GpuShare kThird{2333};

StartOrder part_of(const std::string& gpu, std::uint64_t job,
                   model::ShareMode mode = model::ShareMode::kMps) {
  auto spec = std::make_shared<model::JobSpec>();
  spec->uid = kUid;
  StartOrder order;
  order.attempt = {model::JobId(job), 1};
  order.spec = spec;
  LaunchGpu one;
  one.info.uuid = gpu;
  one.grant.share = kThird;
  one.grant.memory = base::kGiB * 20;
  one.grant.mode = mode;
  LaunchNode node;
  node.node_name = "n1";
  node.gpus = {one};
  order.nodes = {node};
  return order;
}

StartOrder of_user(StartOrder order, std::uint32_t uid) {
  auto spec = std::make_shared<model::JobSpec>(*order.spec);
  spec->uid = uid;
  order.spec = spec;
  return order;
}

class MpsSetsTest : public ::testing::Test {
 protected:
  using Attempts = std::vector<model::AttemptId>;

  node::MpsServer server_with(std::vector<node::MpsJob> jobs) const {
    return {"GPU-1", kUid, "/bin/control", std::nullopt, std::move(jobs)};
  }
  // The launcher's answer that the server has these.
  node::MpsState ready(Attempts attempts) const {
    return {"GPU-1", kUid, true, false, "/run/m", std::move(attempts), {}};
  }
  node::MpsState failed(Attempts attempts = {}) const {
    return {"GPU-1", kUid, false, false, {}, std::move(attempts), "it does not start"};
  }

  const StartOrder first_ = part_of("GPU-1", 1);
  const StartOrder second_ = part_of("GPU-1", 2);
  const node::MpsJob first_job_{first_.attempt, 33, 20'480};
  const node::MpsJob second_job_{second_.attempt, 33, 20'480};
  MpsSets sets_{{"/bin/control", {}}};
};

TEST_F(MpsSetsTest, TellsTheLimitsOfAllOfAUserOnAGpu) {
  sets_.join(first_);
  EXPECT_EQ(sets_.take_changes(), (std::vector{server_with({first_job_})}));
  sets_.join(second_);
  EXPECT_EQ(sets_.take_changes(), (std::vector{server_with({first_job_, second_job_})}));
  sets_.join(second_);
  EXPECT_TRUE(sets_.take_changes().empty()) << "it is known";
}

TEST_F(MpsSetsTest, RoundsLimitsDownAndNeverToNothing) {
  StartOrder tiny = part_of("GPU-1", 1);
  tiny.nodes[0].gpus[0].grant.share = base::GpuShare(7);
  tiny.nodes[0].gpus[0].grant.memory = base::kMiB * 3 - base::Bytes(1);
  sets_.join(tiny);
  EXPECT_EQ(sets_.take_changes().front().jobs, (std::vector<node::MpsJob>{{tiny.attempt, 1, 2}}));
  tiny.nodes[0].gpus[0].grant.memory = base::Bytes(1);
  sets_.join(tiny);
  EXPECT_EQ(sets_.take_changes().front().jobs.front().memory_mib, 1U);
}

TEST_F(MpsSetsTest, EndsAServerWithItsLastJob) {
  sets_.join(first_);
  sets_.join(second_);
  sets_.take_changes();
  sets_.leave(first_.attempt);
  EXPECT_EQ(sets_.take_changes(), (std::vector{server_with({second_job_})}));
  sets_.leave(second_.attempt);
  EXPECT_EQ(sets_.take_changes(), (std::vector{server_with({})}));
  sets_.leave(second_.attempt);
  EXPECT_TRUE(sets_.take_changes().empty()) << "it is told once";
}

TEST_F(MpsSetsTest, TellsNothingOfAServerThatIsNotWantedAnyMore) {
  sets_.join(first_);
  sets_.leave(first_.attempt);
  EXPECT_TRUE(sets_.take_changes().empty());
}

TEST_F(MpsSetsTest, KeepsUsersAndGpusApart) {
  sets_.join(first_);
  sets_.join(of_user(part_of("GPU-1", 2), 1001));
  sets_.join(part_of("GPU-2", 3));
  const auto changes = sets_.take_changes();
  ASSERT_EQ(changes.size(), 3U);
  for (const node::MpsServer& each : changes) EXPECT_EQ(each.jobs.size(), 1U);
}

TEST_F(MpsSetsTest, NamesTheBoardOfAnEmulatedNodeToItsEnd) {
  MpsSets sets({"/emulated/control", {"/boards", "/lib", "/emulated"}});
  StartOrder order = part_of("GPU-1", 1);
  order.nodes[0].emulated = true;
  sets.join(order);
  const node::BoardFiles board{"/lib/libnvidia-ml.so.1", "/boards/n1/state",
                               "/emulated/nvidia-smi"};
  EXPECT_EQ(sets.take_changes().front().board, board);
  sets.leave(order.attempt);
  const auto changes = sets.take_changes();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes.front().board, board);
  EXPECT_TRUE(changes.front().jobs.empty());
}

TEST_F(MpsSetsTest, AnAttemptIsReadyWhenItsServerHasIt) {
  sets_.join(first_);
  EXPECT_FALSE(sets_.is_ready(first_.attempt));
  EXPECT_FALSE(sets_.client_of(first_.attempt));
  EXPECT_EQ(sets_.take(ready({first_.attempt})), (Attempts{first_.attempt}));
  EXPECT_TRUE(sets_.is_ready(first_.attempt));
  EXPECT_EQ(sets_.client_of(first_.attempt),
            (MpsClient{"GPU-1", "/bin/control", "/run/m", 33, 20'480}));
}

TEST_F(MpsSetsTest, AnAnswerToAnEarlierSetSaysNothingOfALaterOne) {
  sets_.join(first_);
  sets_.join(second_);
  EXPECT_EQ(sets_.take(ready({first_.attempt})), (Attempts{first_.attempt}));
  EXPECT_FALSE(sets_.is_ready(second_.attempt));
  EXPECT_EQ(sets_.take(failed({first_.attempt})), (Attempts{first_.attempt}));
  EXPECT_EQ(sets_.take(ready({first_.attempt, second_.attempt})),
            (Attempts{first_.attempt, second_.attempt}));
  EXPECT_TRUE(sets_.is_ready(second_.attempt));
}

TEST_F(MpsSetsTest, AServerThatIsLostIsReadyForNoneUntilItIsBack) {
  sets_.join(first_);
  sets_.take(ready({first_.attempt}));
  EXPECT_EQ(sets_.take(failed()), (Attempts{first_.attempt}));
  EXPECT_FALSE(sets_.is_ready(first_.attempt));
  EXPECT_TRUE(sets_.client_of(first_.attempt)) << "what runs is its client again when it is back";
  sets_.take(ready({first_.attempt}));
  EXPECT_TRUE(sets_.is_ready(first_.attempt));
}

TEST_F(MpsSetsTest, TakesNoAnswerOfAnotherServer) {
  sets_.join(first_);
  node::MpsState other = ready({first_.attempt});
  other.uid = kUid + 1;
  EXPECT_TRUE(sets_.take(other).empty());
  EXPECT_FALSE(sets_.is_ready(first_.attempt));
}

TEST_F(MpsSetsTest, TellsANewLauncherAllAndWaitsForItsAnswer) {
  sets_.join(first_);
  sets_.take_changes();
  sets_.take(ready({first_.attempt}));
  sets_.tell_all_again();
  EXPECT_FALSE(sets_.is_ready(first_.attempt));
  EXPECT_EQ(sets_.take_changes(), (std::vector{server_with({first_job_})}));
}

TEST_F(MpsSetsTest, LeavesOutWhatSharesAGpuInAnotherWay) {
  EXPECT_TRUE(is_mps_client(first_));
  for (const model::ShareMode mode : {model::ShareMode::kNone, model::ShareMode::kTimeSlice}) {
    const StartOrder order = part_of("GPU-1", 3, mode);
    EXPECT_FALSE(is_mps_client(order));
    sets_.join(order);
  }
  EXPECT_TRUE(sets_.take_changes().empty());
}

TEST_F(MpsSetsTest, WithoutAControlDaemonThereIsNoServer) {
  MpsSets none({});
  EXPECT_FALSE(none.can_serve());
  none.join(first_);
  EXPECT_TRUE(none.take_changes().empty());
}

}  // namespace
}  // namespace gpu_platform::execution
