#include "execution/process/attempts.h"

#include <gtest/gtest.h>

#include <unistd.h>

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

}  // namespace
}  // namespace gpu_platform::execution
