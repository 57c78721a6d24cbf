#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "execution/engine_harness_fixture.h"

// What every engine promises (engine.h). An implementation brings a harness and instantiates the
// suite, in one source of a test program:
//
//   INSTANTIATE_TEST_SUITE_P(Virtual, EngineContract,
//                            ::testing::Values(EngineUnderTest{"Virtual", make_harness}),
//                            name_of_engine);

namespace gpu_platform::execution::testing {

class EngineContract : public ::testing::TestWithParam<EngineUnderTest> {
 protected:
  using Kind = Act::Kind;

  void SetUp() override {
    harness_ = GetParam().make();
    if (const std::string why = harness_->open(); !why.empty()) GTEST_SKIP() << why;
  }

  Engine& engine() { return harness_->engine(); }
  Told told(const StartOrder& start) const { return harness_->told(start.attempt); }
  StartOrder order(std::uint64_t job, Kind kind, std::uint8_t code = 0) {
    return harness_->order(job, {kind, code});
  }
  bool begins(const StartOrder& start) {
    return harness_->wait_until(
        [&] { return harness_->is_ready(start.attempt) && !told(start).started.empty(); });
  }
  StartOrder begun(std::uint64_t job, Kind kind, std::uint8_t code = 0) {
    StartOrder start = order(job, kind, code);
    engine().start(start);
    EXPECT_TRUE(begins(start));
    return start;
  }
  // Waits until nothing of it is left; its end, with what holds for every attempt checked.
  Ended end_of(const StartOrder& start) {
    EXPECT_TRUE(harness_->wait_until([&] { return told(start).cleaned > 0; }));
    const Told all = told(start);
    EXPECT_TRUE(all.in_order);
    EXPECT_TRUE(all.is_one_story);
    EXPECT_FALSE(all.ended.empty());
    return all.ended.empty() ? Ended{} : all.ended.front();
  }
  Ended run(const StartOrder& start) {
    engine().start(start);
    return end_of(start);
  }
  void adopt(const StartOrder& start, model::AttemptState state) {
    engine().adopt({{start, state}});
  }
  // Every order so far has been carried out.
  void work_off_orders() { EXPECT_EQ(run(order(999, Kind::kEnds)).exit.code, 0); }
  bool is_silent_of(const StartOrder& start) const {
    const Told all = told(start);
    return all.started.empty() && all.ended.empty() && all.cleaned == 0;
  }
  void expect_lost(const StartOrder& start, model::Lost lost, model::EndReason reason) {
    const Ended ended = end_of(start);
    EXPECT_EQ(ended.exit.lost, lost);
    EXPECT_EQ(ended.reason, reason);
    EXPECT_FALSE(ended.exit.code.has_value());
    EXPECT_FALSE(ended.exit.signal.has_value());
  }

  std::unique_ptr<EngineHarness> harness_;
};

// ---- ends

TEST_P(EngineContract, AnEndIsToldWithItsCode) {
  const StartOrder start = order(1, Kind::kEnds, 7);
  const Ended ended = run(start);
  EXPECT_EQ(ended.exit.code, 7);
  EXPECT_EQ(ended.reason, model::EndReason::kNone);
  EXPECT_TRUE(ended.detail.empty()) << ended.detail;
  ASSERT_FALSE(told(start).started.empty());
  EXPECT_TRUE(told(start).started[0].at.is_set());
  EXPECT_GE(ended.at, told(start).started[0].at);
  EXPECT_EQ(run(order(2, Kind::kEnds, 0)).exit.code, 0);
  EXPECT_EQ(run(order(3, Kind::kEnds, 255)).exit.code, 255);
}

TEST_P(EngineContract, AProgramThatASignalEndsHasItsNumber) {
  const Ended ended = run(order(1, Kind::kCrashes));
  EXPECT_EQ(status_of(ended.exit), 128 + 11);
  EXPECT_EQ(ended.reason, model::EndReason::kNone);
}

TEST_P(EngineContract, AProgramThatIsMissingIsALaunchThatFailed) {
  const StartOrder start = order(1, Kind::kMissing);
  const Ended ended = run(start);
  EXPECT_EQ(ended.exit.code, 127);
  EXPECT_EQ(ended.reason, model::EndReason::kLaunchFailed);
  EXPECT_FALSE(ended.detail.empty());
  EXPECT_EQ(harness_->runs(start.attempt), 0);
}

TEST_P(EngineContract, ManyAtOnceAllEndWithTheirOwnCodes) {
  std::vector<StartOrder> starts;
  for (std::uint8_t job = 1; job <= 20; ++job) {
    starts.push_back(order(job, Kind::kEnds, job));
    engine().start(starts.back());
  }
  for (const StartOrder& start : starts) {
    const Ended ended = end_of(start);
    EXPECT_EQ(ended.exit.code, start.attempt.job.value) << ended.detail;
    EXPECT_EQ(harness_->runs(start.attempt), 1);
  }
}

// ---- starts

TEST_P(EngineContract, ARepeatedStartChangesNothing) {
  const StartOrder start = order(1, Kind::kWaits, 3);
  engine().start(start);
  engine().start(start);
  ASSERT_TRUE(begins(start));
  engine().start(start);
  harness_->let_end(start.attempt);
  EXPECT_EQ(end_of(start).exit.code, 3);
  engine().start(start);
  work_off_orders();
  EXPECT_EQ(end_of(start).exit.code, 3);
  harness_->reopen();
  engine().start(start);
  EXPECT_EQ(end_of(start).exit.code, 3);
  EXPECT_EQ(harness_->runs(start.attempt), 1);
}

TEST_P(EngineContract, AStartForAnotherBootIsNotCarriedOut) {
  StartOrder start = order(1, Kind::kEnds);
  start.boot_id = "another-boot";
  engine().start(start);
  expect_lost(start, model::Lost::kNodeLost, model::EndReason::kNodeLost);
  harness_->reopen();
  adopt(start, model::AttemptState::kRunning);
  expect_lost(start, model::Lost::kNodeLost, model::EndReason::kNodeLost);
  EXPECT_TRUE(told(start).started.empty());
  EXPECT_EQ(harness_->runs(start.attempt), 0);
}

// ---- stops

TEST_P(EngineContract, AStopLetsAProgramEndWithinItsGrace) {
  const StartOrder start = begun(1, Kind::kObeysTerm);
  engine().stop({start.attempt, false, base::hours(1), model::EndReason::kPreempted});
  const Ended ended = end_of(start);
  EXPECT_EQ(status_of(ended.exit), 128 + 15);
  EXPECT_EQ(ended.reason, model::EndReason::kPreempted);
}

TEST_P(EngineContract, AProgramThatIgnoresTheStopIsKilledAfterItsGrace) {
  const StartOrder start = begun(1, Kind::kIgnoresTerm);
  engine().stop({start.attempt, false, base::milliseconds(300), model::EndReason::kCancelledBy});
  const Ended ended = end_of(start);
  EXPECT_EQ(status_of(ended.exit), 128 + 9);
  EXPECT_EQ(ended.reason, model::EndReason::kCancelledBy);
}

TEST_P(EngineContract, AStopWithoutGraceKillsAlsoDuringAGrace) {
  const StartOrder start = begun(1, Kind::kIgnoresTerm);
  engine().stop({start.attempt, false, base::hours(1), model::EndReason::kCancelledBy});
  engine().stop({start.attempt, true, {}, model::EndReason::kCancelledBy});
  const Ended ended = end_of(start);
  EXPECT_EQ(status_of(ended.exit), 128 + 9);
  EXPECT_EQ(ended.reason, model::EndReason::kCancelledBy);
}

TEST_P(EngineContract, AStopThatComesFirstKeepsTheStartAway) {
  const StartOrder start = order(1, Kind::kEnds);
  engine().stop({start.attempt, true, {}, model::EndReason::kCancelledBy});
  engine().start(start);
  const Ended ended = end_of(start);
  EXPECT_EQ(ended.reason, model::EndReason::kLaunchFailed);
  EXPECT_FALSE(ended.exit.code.has_value());
  work_off_orders();
  EXPECT_TRUE(told(start).started.empty());
  EXPECT_EQ(harness_->runs(start.attempt), 0);
}

TEST_P(EngineContract, AStopRightAfterTheStartIsNotLost) {
  std::vector<StartOrder> starts;
  for (std::uint64_t job = 1; job <= 20; ++job) {
    starts.push_back(order(job, Kind::kIgnoresTerm));
    engine().start(starts.back());
    engine().stop({starts.back().attempt, true, {}, model::EndReason::kKilledBy});
  }
  for (const StartOrder& start : starts) EXPECT_NE(status_of(end_of(start).exit), 0);
}

TEST_P(EngineContract, AStopAfterTheEndChangesNothing) {
  const StartOrder start = order(1, Kind::kEnds, 7);
  run(start);
  engine().stop({start.attempt, true, {}, model::EndReason::kKilledBy});
  work_off_orders();
  const Ended ended = end_of(start);
  EXPECT_EQ(ended.exit.code, 7);
  EXPECT_EQ(ended.reason, model::EndReason::kNone);
}

// ---- limits and signals

TEST_P(EngineContract, TheTimeLimitIsToldWithTheEnd) {
  StartOrder start = order(1, Kind::kObeysTerm);
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  start.time_limit = base::milliseconds(400);
  const Ended ended = run(start);
  EXPECT_NE(status_of(ended.exit), 0);
  EXPECT_EQ(ended.reason, model::EndReason::kTimeLimit);
  EXPECT_EQ(ended.time_limit, base::milliseconds(400));
}

TEST_P(EngineContract, TheTimeLimitIsKeptWhileTheDaemonIsAway) {
  if (const std::string why = harness_->why_no_limit_while_away(); !why.empty()) {
    GTEST_SKIP() << why;
  }
  StartOrder start = order(1, Kind::kIgnoresTerm);
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  start.time_limit = base::milliseconds(400);
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  start.stop_grace = base::milliseconds(100);
  engine().start(start);
  ASSERT_TRUE(harness_->wait_until([&] { return !told(start).started.empty(); }));
  harness_->close();
  ASSERT_TRUE(harness_->wait_until([&] { return harness_->is_over(start.attempt); }));
  harness_->reopen();
  adopt(start, model::AttemptState::kRunning);
  EXPECT_EQ(end_of(start).reason, model::EndReason::kTimeLimit);
}

TEST_P(EngineContract, AShorterLimitEndsWhatHasHadItsTime) {
  StartOrder start = order(1, Kind::kIgnoresTerm);
  start.time_limit = base::hours(1);
  // layers allow expires: it is to pass; what is to succeed does not wait for it
  start.stop_grace = base::milliseconds(100);
  engine().start(start);
  ASSERT_TRUE(begins(start));
  engine().set_limit({start.attempt, base::milliseconds(2)});
  const Ended ended = end_of(start);
  EXPECT_EQ(status_of(ended.exit), 128 + 9);
  EXPECT_EQ(ended.reason, model::EndReason::kTimeLimit);
  EXPECT_EQ(ended.time_limit, base::milliseconds(2));
}

TEST_P(EngineContract, ALongerLimitLetsItRunOn) {
  StartOrder longer = order(1, Kind::kWaits, 6);
  StartOrder same = order(2, Kind::kObeysTerm);
  longer.time_limit = same.time_limit = base::seconds(2);
  engine().start(longer);
  ASSERT_TRUE(harness_->wait_until([&] { return !told(longer).started.empty(); }));
  engine().set_limit({longer.attempt, base::hours(1)});
  EXPECT_EQ(run(same).reason, model::EndReason::kTimeLimit);  // begun later, with the old limit
  EXPECT_TRUE(told(longer).ended.empty());
  ASSERT_TRUE(begins(longer));
  harness_->let_end(longer.attempt);
  EXPECT_EQ(end_of(longer).exit.code, 6);
}

TEST_P(EngineContract, ALimitThatComesTooLateChangesNothing) {
  const StartOrder start = order(1, Kind::kEnds, 4);
  run(start);
  engine().set_limit({start.attempt, base::milliseconds(1)});
  engine().set_limit({order(2, Kind::kEnds).attempt, base::milliseconds(1)});
  work_off_orders();
  EXPECT_EQ(end_of(start).exit.code, 4);
  EXPECT_TRUE(is_silent_of(order(2, Kind::kEnds)));
}

TEST_P(EngineContract, ASignalReachesTheJob) {
  if (const std::string why = harness_->why_no_signals(); !why.empty()) GTEST_SKIP() << why;
  const StartOrder start = begun(1, Kind::kWaits, 8);
  engine().signal({start.attempt, 10});
  EXPECT_TRUE(harness_->wait_until([&] { return harness_->has_got_usr1(start.attempt); }));
  harness_->let_end(start.attempt);
  EXPECT_EQ(end_of(start).exit.code, 8);
}

TEST_P(EngineContract, ASignalForWhatDoesNotRunChangesNothing) {
  const StartOrder start = order(1, Kind::kEnds, 8);
  engine().signal({start.attempt, 9});
  EXPECT_EQ(run(start).exit.code, 8);
  engine().signal({start.attempt, 9});
  work_off_orders();
  EXPECT_EQ(end_of(start).exit.code, 8);
}

// ---- forget and adopt

TEST_P(EngineContract, WhatIsForgottenIsNotKnownAnyMore) {
  const StartOrder start = order(1, Kind::kEnds);
  run(start);
  engine().forget({start.attempt});
  ASSERT_TRUE(harness_->wait_until([&] { return harness_->is_forgotten(start.attempt); }));
  harness_->reopen();
  adopt(start, model::AttemptState::kRequested);
  work_off_orders();
  EXPECT_TRUE(is_silent_of(start));
}

TEST_P(EngineContract, WhatRunsIsNotForgotten) {
  const StartOrder start = begun(1, Kind::kWaits, 5);
  engine().forget({start.attempt});
  work_off_orders();
  harness_->let_end(start.attempt);
  EXPECT_EQ(end_of(start).exit.code, 5);
}

TEST_P(EngineContract, WhatRunsIsFoundAgain) {
  const StartOrder start = begun(1, Kind::kWaits, 7);
  const Started before = told(start).started[0];
  harness_->reopen();
  adopt(start, model::AttemptState::kRequested);
  ASSERT_TRUE(harness_->wait_until([&] { return !told(start).started.empty(); }));
  EXPECT_EQ(told(start).started[0].pid, before.pid);
  EXPECT_EQ(told(start).started[0].at, before.at);
  adopt(start, model::AttemptState::kRunning);
  harness_->let_end(start.attempt);
  EXPECT_EQ(end_of(start).exit.code, 7);
  EXPECT_EQ(harness_->runs(start.attempt), 1);
}

TEST_P(EngineContract, AnEndWhileTheDaemonIsAwayIsToldToTheNext) {
  const StartOrder start = begun(1, Kind::kWaits, 9);
  harness_->close();
  harness_->let_end(start.attempt);
  ASSERT_TRUE(harness_->wait_until([&] { return harness_->is_over(start.attempt); }));
  harness_->reopen();
  adopt(start, model::AttemptState::kRunning);
  EXPECT_EQ(end_of(start).exit.code, 9);
  EXPECT_EQ(told(start).started.size(), 1U);
}

TEST_P(EngineContract, WhatWasNeverStartedHasNoAnswerAndMayBeStarted) {
  const StartOrder start = order(1, Kind::kEnds, 2);
  adopt(start, model::AttemptState::kRequested);
  work_off_orders();
  EXPECT_TRUE(is_silent_of(start));
  EXPECT_EQ(run(start).exit.code, 2);
  EXPECT_EQ(harness_->runs(start.attempt), 1);
}

TEST_P(EngineContract, WhatIsSaidToRunAndIsNotIsLostAndNeverStarted) {
  const StartOrder start = order(1, Kind::kEnds);
  adopt(start, model::AttemptState::kRunning);
  expect_lost(start, model::Lost::kUnknown, model::EndReason::kSupervisorLost);
  engine().start(start);
  work_off_orders();
  EXPECT_EQ(harness_->runs(start.attempt), 0);
}

TEST_P(EngineContract, AnEndThatCannotBeKnownIsToldAsLost) {
  const StartOrder start = begun(1, Kind::kIgnoresTerm);
  harness_->kill_supervisor(start.attempt);
  expect_lost(start, model::Lost::kUnknown, model::EndReason::kSupervisorLost);
}

TEST_P(EngineContract, AnEndThatCannotBeKnownIsToldToTheNextDaemon) {
  const StartOrder start = begun(1, Kind::kIgnoresTerm);
  harness_->close();
  harness_->kill_supervisor(start.attempt);
  harness_->reopen();
  adopt(start, model::AttemptState::kRunning);
  expect_lost(start, model::Lost::kUnknown, model::EndReason::kSupervisorLost);
}

}  // namespace gpu_platform::execution::testing
