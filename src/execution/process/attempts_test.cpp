#include "execution/process/attempts.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>

#include "model/job_spec.h"
#include "node/syscalls.h"

namespace gpu_platform::execution {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

class Nobody : public ObservationSink {
 public:
  void observe(Observation) override {}
};

class StopOfAnAttempt : public ::testing::Test {
 protected:
  void SetUp() override {
    StartOrder order;
    order.attempt = id_;
    order.spec = std::make_shared<model::JobSpec>();
    order.boot_id = "boot";
    attempts_.start(order);
    attempts_.launch_sent(id_);
    // The supervisor is this very process: it lives and confirms nothing.
    attempts_.answer(node::Launched{id_, 1}, os::Descriptor(node::open_pidfd(getpid())), 0);
  }
  StopOrder with_grace(base::Duration grace) const {
    return {id_, false, grace, model::EndReason::kCancelledBy};
  }
  bool is_killed_at(std::int64_t now) {
    attempts_.messages().clear();
    attempts_.do_due(now);
    for (const node::Message& message : attempts_.messages()) {
      if (std::holds_alternative<node::KillTree>(message)) return true;
    }
    return false;
  }

  Nobody sink_;
  const model::AttemptId id_{model::JobId(1), 1};
  Attempts attempts_{"boot", sink_};
};

TEST_F(StopOfAnAttempt, SilentSupervisorIsPassedByAfterGraceAndTimeout) {
  attempts_.stop(with_grace(base::seconds(10)), 0);
  EXPECT_FALSE(is_killed_at(14 * kSecond));
  EXPECT_TRUE(is_killed_at(16 * kSecond));
}

TEST_F(StopOfAnAttempt, RepeatedOrderBuysNoTime) {
  for (int second = 0; second < 15; ++second) {
    attempts_.stop(with_grace(base::seconds(10)), second * kSecond);
    EXPECT_FALSE(is_killed_at(second * kSecond));
  }
  attempts_.stop(with_grace(base::seconds(10)), 15 * kSecond);
  EXPECT_TRUE(is_killed_at(17 * kSecond));
}

TEST_F(StopOfAnAttempt, SharperOrderShortensTheTime) {
  attempts_.stop(with_grace(base::seconds(1000)), 0);
  attempts_.stop({id_, true, {}, model::EndReason::kKilledBy}, kSecond);
  EXPECT_FALSE(is_killed_at(4 * kSecond));
  EXPECT_TRUE(is_killed_at(7 * kSecond));
}

class TurnsOfAttempts : public ::testing::Test {
 protected:
  // It has started.
  void run(std::uint64_t job) {
    const model::AttemptId id{model::JobId(job), 1};
    auto spec = std::make_shared<model::JobSpec>();
    StartOrder order;
    order.attempt = id;
    order.spec = spec;
    order.boot_id = "boot";
    LaunchGpu gpu;
    gpu.info.uuid = "GPU-1";
    gpu.grant.share = base::GpuShare(3500);
    gpu.grant.mode = model::ShareMode::kTimeSlice;
    LaunchNode node;
    node.gpus = {gpu};
    order.nodes = {node};
    attempts_.start(order);
    attempts_.launch_sent(id);
    node::Notice started;
    started.kind = node::Notice::Kind::kStarted;
    started.attempt = id;
    attempts_.notice(started);
  }
  // How many take turns, by each message since it was last asked.
  std::vector<std::size_t> told() {
    std::vector<std::size_t> counts;
    for (const node::Message& message : attempts_.messages()) {
      const auto* const turns = std::get_if<node::TimeSlices>(&message);
      if (turns != nullptr) counts.push_back(turns->jobs.size());
    }
    attempts_.messages().clear();
    return counts;
  }

  Nobody sink_;
  Attempts attempts_{"boot", sink_};
};

TEST_F(TurnsOfAttempts, BeginWithTheSecondThatHasStarted) {
  run(1);
  EXPECT_EQ(told(), std::vector<std::size_t>{});
  run(2);
  EXPECT_EQ(told(), std::vector<std::size_t>{2});
  run(3);
  EXPECT_EQ(told(), std::vector<std::size_t>{3});
}

TEST_F(TurnsOfAttempts, AreNotThoseOfOneThatIsStopped) {
  run(1);
  run(2);
  EXPECT_EQ(told(), std::vector<std::size_t>{2});
  attempts_.stop({{model::JobId(2), 1}, false, base::seconds(10), model::EndReason::kCancelledBy},
                 0);
  EXPECT_EQ(told(), std::vector<std::size_t>{1});
}

TEST_F(TurnsOfAttempts, AreToldToEachNewLauncher) {
  run(1);
  run(2);
  told();
  attempts_.launcher_is_new(0);
  EXPECT_EQ(told(), std::vector<std::size_t>{2});
}

class MpsClientsOfAttempts : public ::testing::Test, public ObservationSink {
 protected:
  static constexpr std::uint32_t kUid = 1000;

  void observe(Observation observation) override {
    if (auto* ended = std::get_if<Ended>(&observation)) ended_.push_back(std::move(*ended));
  }
  static model::AttemptId id_of(std::uint64_t job) { return {model::JobId(job), 1}; }
  static StartOrder order_of(std::uint64_t job) {
    auto spec = std::make_shared<model::JobSpec>();
    spec->uid = kUid;
    StartOrder order;
    order.attempt = id_of(job);
    order.spec = spec;
    order.boot_id = "boot";
    LaunchGpu gpu;
    gpu.info.uuid = "GPU-1";
    gpu.grant.share = base::GpuShare(3500);
    gpu.grant.memory = base::kGiB * 40;
    gpu.grant.mode = model::ShareMode::kMps;
    LaunchNode node;
    node.gpus = {gpu};
    order.nodes = {node};
    return order;
  }
  // It has been ordered, and its server has been asked for.
  void ask(std::uint64_t job) {
    attempts_.start(order_of(job));
    attempts_.launches().clear();
    EXPECT_TRUE(attempts_.begin_mps(id_of(job), 0));
  }
  void answer(bool is_ready, std::vector<model::AttemptId> jobs, std::string why = {}) {
    attempts_.answer(node::MpsState{"GPU-1", kUid, is_ready, false, is_ready ? "/run/m" : "",
                                    std::move(jobs), std::move(why)},
                     {}, 0);
  }
  // The jobs of the server, by each message since it was last asked.
  std::vector<std::vector<std::uint64_t>> told() {
    std::vector<std::vector<std::uint64_t>> all;
    for (const node::Message& message : attempts_.messages()) {
      const auto* const server = std::get_if<node::MpsServer>(&message);
      if (server == nullptr) continue;
      auto& jobs = all.emplace_back();
      for (const node::MpsJob& job : server->jobs) jobs.push_back(job.attempt.job.value);
    }
    attempts_.messages().clear();
    return all;
  }
  bool is_to_be_launched(std::uint64_t job) {
    return std::ranges::find(attempts_.launches(), id_of(job)) != attempts_.launches().end() &&
           attempts_.order_to_launch(id_of(job)) != nullptr;
  }
  void stop(std::uint64_t job) {
    attempts_.stop({id_of(job), false, base::seconds(10), model::EndReason::kCancelledBy}, 0);
  }

  using Told = std::vector<std::vector<std::uint64_t>>;
  std::vector<Ended> ended_;
  std::vector<std::pair<std::string, std::uint32_t>> lost_;  // servers
  Attempts attempts_{"boot",
                     *this,
                     {.mps = {"/bin/control", {}},
                      .tell_mps_loss = [this](const std::string& gpu, std::uint32_t uid) {
                        lost_.emplace_back(gpu, uid);
                      }}};
};

TEST_F(MpsClientsOfAttempts, AreLaunchedWhenTheirServerHasThem) {
  ask(1);
  EXPECT_EQ(told(), (Told{{1}}));
  EXPECT_FALSE(is_to_be_launched(1));
  answer(true, {id_of(1)});
  EXPECT_TRUE(is_to_be_launched(1));
  EXPECT_FALSE(attempts_.begin_mps(id_of(1), 0)) << "it need not wait again";
  ask(2);
  answer(true, {id_of(1)});
  EXPECT_FALSE(is_to_be_launched(2)) << "the server does not have it yet";
  answer(true, {id_of(1), id_of(2)});
  EXPECT_TRUE(is_to_be_launched(2));
}

TEST_F(MpsClientsOfAttempts, EndUnstartedWithTheReasonIfThereIsNoServer) {
  ask(1);
  answer(false, {}, "the daemon ended with 1");
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(ended_[0].reason, model::EndReason::kLaunchFailed);
  EXPECT_NE(ended_[0].detail.find("the daemon ended with 1"), std::string::npos);
  EXPECT_FALSE(is_to_be_launched(1));
  EXPECT_EQ(told(), Told{}) << "its server was never asked for";
}

TEST_F(MpsClientsOfAttempts, LossOfTheirServerIsTold) {
  ask(1);
  answer(true, {id_of(1)});
  attempts_.launch_sent(id_of(1));
  answer(false, {id_of(1)}, "the MPS daemon did not take 50 %");
  EXPECT_TRUE(lost_.empty()) << "it is there";
  attempts_.answer(node::MpsState{"GPU-1", kUid, false, true, "", {id_of(1)}, "killed"}, {}, 0);
  EXPECT_EQ(lost_, (std::vector<std::pair<std::string, std::uint32_t>>{{"GPU-1", kUid}}));
  EXPECT_TRUE(ended_.empty()) << "its processes say how they end";
}

TEST_F(MpsClientsOfAttempts, EndUnstartedIfNoAnswerComesInTime) {
  ask(1);
  told();
  EXPECT_EQ(attempts_.do_due(29 * kSecond), 30 * kSecond);
  EXPECT_TRUE(ended_.empty());
  attempts_.do_due(30 * kSecond);
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(ended_[0].reason, model::EndReason::kLaunchFailed);
  EXPECT_EQ(told(), (Told{{}})) << "what was begun for it is ended";
  answer(true, {id_of(1)});
  EXPECT_FALSE(is_to_be_launched(1)) << "the answer is too late";
}

TEST_F(MpsClientsOfAttempts, EndUnstartedIfTheyAreStoppedMeanwhile) {
  ask(1);
  told();
  stop(1);
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(told(), (Told{{}}));
  EXPECT_EQ(attempts_.do_due(60 * kSecond), std::nullopt) << "no deadline is left";
  EXPECT_EQ(ended_.size(), 1U);
}

TEST_F(MpsClientsOfAttempts, StayClientsUntilNothingOfThemIsLeft) {
  ask(1);
  answer(true, {id_of(1)});
  attempts_.launch_sent(id_of(1));
  EXPECT_EQ(told(), (Told{{1}}));
  stop(1);
  node::Notice notice;
  notice.kind = node::Notice::Kind::kEnded;
  notice.attempt = id_of(1);
  attempts_.notice(notice);
  EXPECT_EQ(told(), Told{}) << "its last processes are ended through the server's daemon";
  notice.kind = node::Notice::Kind::kCleaned;
  attempts_.notice(notice);
  EXPECT_EQ(told(), (Told{{}}));
}

TEST_F(MpsClientsOfAttempts, AreToldToEachNewLauncherWhichAnswersAnew) {
  ask(1);
  answer(true, {id_of(1)});
  attempts_.launches().clear();
  attempts_.launch_sent(id_of(1));
  ask(2);
  told();
  attempts_.launcher_is_new(0);
  EXPECT_EQ(told(), (Told{{1, 2}}));
  EXPECT_TRUE(attempts_.begin_mps(id_of(1), 0)) << "its launch was lost, and is one again";
  answer(true, {id_of(1), id_of(2)});
  EXPECT_TRUE(is_to_be_launched(1));
  EXPECT_TRUE(is_to_be_launched(2));
}

TEST_F(MpsClientsOfAttempts, RunOnWhenTheirServerIsLost) {
  ask(1);
  answer(true, {id_of(1)});
  attempts_.launch_sent(id_of(1));
  answer(false, {}, "it was lost");
  EXPECT_TRUE(ended_.empty());
  ASSERT_TRUE(attempts_.mps_client_of(id_of(1)));
  EXPECT_EQ(attempts_.mps_client_of(id_of(1))->folder, "/run/m");
}

TEST_F(MpsClientsOfAttempts, WithoutAControlDaemonAreNotLaunched) {
  Attempts without("boot", *this);
  without.start(order_of(1));
  EXPECT_TRUE(without.begin_mps(id_of(1), 0));
  ASSERT_EQ(ended_.size(), 1U);
  EXPECT_EQ(ended_[0].reason, model::EndReason::kLaunchFailed);
  EXPECT_NE(ended_[0].detail.find("sharing.mps_control"), std::string::npos);
}

TEST_F(MpsClientsOfAttempts, OfOtherModesWaitForNone) {
  StartOrder order = order_of(1);
  order.nodes[0].gpus[0].grant.mode = model::ShareMode::kTimeSlice;
  attempts_.start(order);
  EXPECT_FALSE(attempts_.begin_mps(id_of(1), 0));
  EXPECT_TRUE(is_to_be_launched(1));
  EXPECT_EQ(told(), Told{});
}

}  // namespace
}  // namespace gpu_platform::execution
