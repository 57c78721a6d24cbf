#include "execution/process/preflights.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "execution/process/attempts.h"
#include "execution/process/engine_fixture.h"
#include "os/packet_socket.h"

namespace gpu_platform::execution::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const model::AttemptId kAttempt{model::JobId(7), 1};

StartOrder start_on(const std::vector<std::string>& nodes, model::Preflight preflight) {
  StartOrder order;
  order.attempt = kAttempt;
  auto spec = std::make_shared<model::JobSpec>();
  spec->preflight = preflight;
  order.spec = spec;
  for (const std::string& name : nodes) {
    LaunchNode node;
    node.node_name = name;
    node.gpus.resize(1);
    node.gpus[0].info.uuid = "GPU-" + name;
    order.nodes.push_back(node);
  }
  return order;
}

// The launcher's side is this test.
class PreflightsTest : public ::testing::Test {
 protected:
  struct Asked {
    node::RunDriver order;
    os::Descriptor socket;
    int handle = -1;  // of the answer
  };

  void go_on() {
    checks_.go_on(
        [&](const node::RunDriver& order, int socket) {
          asked_.push_back({order, os::Descriptor(fcntl(socket, F_DUPFD_CLOEXEC, 3))});
          return LauncherLink::Sent::kYes;
        },
        now_);
    for (const int handle : checks_.take_new_handles()) {
      for (Asked& asked : asked_) {
        if (asked.handle < 0) {
          asked.handle = handle;
          break;
        }
      }
    }
  }
  void begin(const std::vector<std::string>& nodes,
             model::Preflight preflight = model::Preflight::kQuick) {
    preflights_.begin(start_on(nodes, preflight), now_);
    go_on();
  }
  void answer(const node::DriverAnswer& answer) {
    Asked asked = std::move(asked_.front());
    asked_.erase(asked_.begin());
    os::send_packet(asked.socket.get(), node::encode_driver_answer(answer));
    EXPECT_TRUE(checks_.read(asked.handle));
  }
  std::vector<PreflightOutcome> ended() { return preflights_.take_ended(now_); }

  std::int64_t now_ = 1;
  std::vector<Asked> asked_;
  Observed observed_;
  GpuResets checks_{{}, observed_};
  Preflights preflights_{checks_};
};

TEST_F(PreflightsTest, OnlyAJobWithGpusThatAsksForACheckIsChecked) {
  EXPECT_TRUE(Preflights::is_asked_for(start_on({"n1"}, model::Preflight::kQuick)));
  EXPECT_FALSE(Preflights::is_asked_for(start_on({"n1"}, model::Preflight::kNone)));
  StartOrder without = start_on({"n1"}, model::Preflight::kDeep);
  without.nodes[0].gpus.clear();
  EXPECT_FALSE(Preflights::is_asked_for(without));
}

TEST_F(PreflightsTest, CheckThatPassesSaysWhatWasDoneAndHowLongItTook) {
  begin({"n1"});
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_EQ(asked_[0].order.verb, node::DriverVerb::kQuickCheck);
  EXPECT_THAT(asked_[0].order.gpus, ElementsAre("GPU-n1"));
  EXPECT_THAT(ended(), IsEmpty());
  now_ += base::milliseconds(400).value();
  answer({{{"GPU-n1", ""}}, "readings only"});
  const auto outcomes = ended();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].attempt, kAttempt);
  EXPECT_THAT(outcomes[0].unfit_gpus, IsEmpty());
  EXPECT_EQ(outcomes[0].note, "quick: passed in 0.4 s (readings only)");
  EXPECT_THAT(observed_.resets(), IsEmpty()) << "no check of the GPU itself was ordered";
}

TEST_F(PreflightsTest, DeepCheckIsOne) {
  begin({"n1"}, model::Preflight::kDeep);
  EXPECT_EQ(asked_.at(0).order.verb, node::DriverVerb::kDeepCheck);
  answer({{{"GPU-n1", ""}}, ""});
  EXPECT_THAT(ended().at(0).note, StartsWith("deep: passed in "));
}

TEST_F(PreflightsTest, GpuThatFailsIsNamed) {
  begin({"n1"});
  answer({{{"GPU-n1", "its memory"}}, ""});
  EXPECT_THAT(ended().at(0).unfit_gpus, ElementsAre(UnfitGpu{"n1", "GPU-n1", "its memory"}));
}

TEST_F(PreflightsTest, CheckThatIsRefusedFailsNoGpuAndSaysWhy) {
  begin({"n1"});
  answer(node::refused_answer({"GPU-n1"}, "no rule allows it"));
  const auto outcomes = ended();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_THAT(outcomes[0].unfit_gpus, IsEmpty());
  EXPECT_EQ(outcomes[0].note, "quick: not done: no rule allows it");
}

TEST_F(PreflightsTest, DriverProgramWithoutTimeFailsNoGpu) {
  begin({"n1"});
  answer(node::untried_answer({"GPU-n1"}, "the driver is busy with other requests"));
  const auto outcomes = ended();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_THAT(outcomes[0].unfit_gpus, IsEmpty());
  EXPECT_EQ(outcomes[0].note, "quick: not done: the driver is busy with other requests");
}

TEST_F(PreflightsTest, EachNodeOfAGangChecksItsOwnAndAFailureEndsTheOthers) {
  begin({"n1", "n2"});
  ASSERT_EQ(asked_.size(), 2U);
  EXPECT_THAT(asked_[1].order.gpus, ElementsAre("GPU-n2"));
  answer({{{"GPU-n1", "its memory"}}, ""});
  EXPECT_THAT(ended(), IsEmpty());
  pollfd shut{asked_[0].socket.get(), POLLRDHUP, 0};
  EXPECT_EQ(poll(&shut, 1, 0), 1) << "the check on n2 was not given up";
  answer(node::untried_answer({"GPU-n2"}, "its answer is not wanted any more"));
  EXPECT_THAT(ended().at(0).unfit_gpus, ElementsAre(UnfitGpu{"n1", "GPU-n1", "its memory"}));
}

TEST_F(PreflightsTest, CheckThatIsGivenUpEndsWhenNothingOfItIsLeft) {
  begin({"n1"});
  preflights_.give_up(kAttempt, now_);
  EXPECT_THAT(ended(), IsEmpty()) << "its program may still be there";
  const int handle = asked_[0].handle;
  asked_.clear();  // the last end of the socket closes with the program
  EXPECT_TRUE(checks_.read(handle));
  EXPECT_EQ(ended().size(), 1U);
}

TEST_F(PreflightsTest, CheckThatWasNotSentIsGivenUpAtOnce) {
  preflights_.begin(start_on({"n1"}, model::Preflight::kQuick), now_);
  preflights_.give_up(kAttempt, now_);
  EXPECT_EQ(ended().size(), 1U);
  go_on();
  EXPECT_THAT(asked_, IsEmpty());
}

TEST_F(PreflightsTest, SilentLauncherDoesNotKeepACancelledJob) {
  begin({"n1"});
  preflights_.give_up(kAttempt, now_);
  const auto due = checks_.do_due(now_);
  ASSERT_TRUE(due.has_value());
  EXPECT_LT(*due, base::seconds(60).value());
  checks_.do_due(*due);
  EXPECT_EQ(ended().size(), 1U);
}

TEST_F(PreflightsTest, LauncherThatEndsIsAskedAgainAndNotForEver) {
  begin({"n1"});
  for (int times = 0; times < 3; ++times) {
    ASSERT_EQ(asked_.size(), 1U) << times;
    const int handle = asked_[0].handle;
    asked_.clear();
    EXPECT_TRUE(checks_.read(handle));
    EXPECT_THAT(ended(), IsEmpty());
    go_on();
  }
  const int handle = asked_.at(0).handle;
  asked_.clear();
  EXPECT_TRUE(checks_.read(handle));
  EXPECT_THAT(ended().at(0).note, HasSubstr("not done: the program that checks GPUs ended"));
}

// ---- what becomes of the attempt

class CheckedAttempt : public ::testing::Test {
 protected:
  CheckedAttempt() {
    StartOrder order = start_on({"n1"}, model::Preflight::kQuick);
    order.boot_id = "boot";
    attempts_.start(order);
  }
  Told told() const { return observed_.of(kAttempt); }

  Observed observed_;
  Attempts attempts_{"boot", observed_};
};

TEST_F(CheckedAttempt, IsLaunchedOnceItsCheckHasPassedAndIsNotCheckedAgain) {
  ASSERT_NE(attempts_.begin_check(kAttempt), nullptr);
  EXPECT_EQ(attempts_.order_to_launch(kAttempt), nullptr);
  attempts_.launches().clear();
  attempts_.check_ended({kAttempt, {}, "quick: passed in 0.4 s"});
  EXPECT_THAT(attempts_.launches(), ElementsAre(kAttempt));
  EXPECT_EQ(attempts_.begin_check(kAttempt), nullptr);
  EXPECT_NE(attempts_.order_to_launch(kAttempt), nullptr);
  EXPECT_THAT(told().ended, IsEmpty());
}

TEST_F(CheckedAttempt, IsGivenUpWithTheGpusThatAreUnfit) {
  ASSERT_NE(attempts_.begin_check(kAttempt), nullptr);
  attempts_.launches().clear();
  attempts_.check_ended({kAttempt, {{"n1", "GPU-n1", "its memory"}}, ""});
  ASSERT_EQ(told().ended.size(), 1U);
  EXPECT_EQ(told().ended[0].reason, model::EndReason::kLaunchFailed);
  EXPECT_THAT(told().ended[0].unfit_gpus, ElementsAre(UnfitGpu{"n1", "GPU-n1", "its memory"}));
  EXPECT_EQ(told().cleaned, 1);
  EXPECT_THAT(attempts_.launches(), IsEmpty());
}

TEST_F(CheckedAttempt, IsStoppedWithoutAStartWhenItsCheckHasEnded) {
  ASSERT_NE(attempts_.begin_check(kAttempt), nullptr);
  attempts_.launches().clear();
  attempts_.stop({kAttempt, false, {}, model::EndReason::kCancelledBy}, 0);
  EXPECT_THAT(told().ended, IsEmpty()) << "its GPUs are still in use";
  attempts_.check_ended({kAttempt, {}, "quick: passed in 0.4 s"});
  ASSERT_EQ(told().ended.size(), 1U);
  EXPECT_EQ(told().cleaned, 1);
  EXPECT_THAT(attempts_.launches(), IsEmpty());
  attempts_.check_ended({kAttempt, {}, "late"});
  EXPECT_EQ(told().ended.size(), 1U);
}

}  // namespace
}  // namespace gpu_platform::execution::testing
