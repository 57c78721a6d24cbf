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

}  // namespace
}  // namespace gpu_platform::execution
