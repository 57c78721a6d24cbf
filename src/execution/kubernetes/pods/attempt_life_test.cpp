#include "execution/kubernetes/pods/attempt_life.h"

#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::execution {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr base::Instant kNow(1'000'000'000'000);

struct TestAttempt : AttemptLife {};

class AttemptLivesTest : public ::testing::Test {
 protected:
  static StartOrder order() {
    StartOrder order;
    order.attempt = {model::JobId(7), 1};
    order.boot_id = "boot-1";
    order.nodes.resize(1);
    order.nodes.front().node_name = "alpha";
    order.time_limit = base::minutes(1);
    return order;
  }
  TestAttempt& ordered() {
    TestAttempt& attempt = lives_.entry(order().attempt);
    attempt.order = order();
    attempt.has_order = true;
    return attempt;
  }
  void adopt(const std::vector<KnownAttempt>& known) {
    lives_.adopt(
        known, kNow,
        [](TestAttempt& attempt, const StartOrder& order) {
          attempt.order = order;
          attempt.has_order = true;
        },
        [this](TestAttempt&, model::AttemptState) { ++resumed_; });
  }

  std::string boot_id_ = "boot-1";
  AttemptLives<TestAttempt> lives_{base::minutes(10),
                                   [this](std::string_view) { return boot_id_; }};
  int resumed_ = 0;
};

TEST_F(AttemptLivesTest, ARepeatedStartIsToldAgainWhatHappened) {
  TestAttempt& attempt = ordered();
  EXPECT_TRUE(lives_.begin_start(attempt, kNow));
  lives_.started(attempt, kNow);
  lives_.end_with(attempt, {}, kNow);
  lives_.clean(attempt);
  EXPECT_THAT(lives_.take_observations(), SizeIs(3));
  EXPECT_FALSE(lives_.begin_start(attempt, kNow + base::seconds(1)));
  EXPECT_THAT(lives_.take_observations(), SizeIs(3));
}

TEST_F(AttemptLivesTest, ALaterStopShortensTheGraceAndKeepsTheReason) {
  TestAttempt& attempt = ordered();
  lives_.stop(attempt, {attempt.id, false, base::seconds(30), model::EndReason::kTimeLimit});
  lives_.stop(attempt, {attempt.id, false, base::seconds(60), model::EndReason::kKilledBy});
  EXPECT_EQ(attempt.stop_grace, 30u);
  lives_.stop(attempt, {attempt.id, true, {}, model::EndReason::kKilledBy});
  EXPECT_EQ(attempt.stop_grace, 1u);
  EXPECT_EQ(attempt.stop->reason, model::EndReason::kTimeLimit);
}

TEST_F(AttemptLivesTest, AnAttemptIsForgottenWhenItIsCleaned) {
  TestAttempt& attempt = ordered();
  lives_.forget({attempt.id});
  EXPECT_FALSE(attempt.is_forgotten);
  lives_.clean(attempt);
  lives_.forget({attempt.id});
  EXPECT_TRUE(attempt.is_forgotten);
}

TEST_F(AttemptLivesTest, WhatTheCoreDoesNotKnowIsStoppedInSilenceOnceAllIsSeenAndAdopted) {
  TestAttempt& unknown = lives_.entry({model::JobId(9), 1});
  lives_.listed();
  EXPECT_FALSE(unknown.stop.has_value());
  adopt({});
  ASSERT_TRUE(unknown.stop.has_value());
  EXPECT_EQ(unknown.stop->reason, model::EndReason::kKilledBy);
  lives_.end_with(unknown, {}, kNow);
  lives_.clean(unknown);
  EXPECT_TRUE(unknown.is_forgotten);
  EXPECT_THAT(lives_.take_observations(), IsEmpty());
}

TEST_F(AttemptLivesTest, AnAdoptedAttemptIsResumedOnceAndKept) {
  const KnownAttempt known{.order = order(), .state = model::AttemptState::kRunning};
  lives_.listed();
  adopt({known});
  adopt({known});
  EXPECT_EQ(resumed_, 1);
  EXPECT_FALSE(lives_.find(order().attempt)->is_orphan);
}

TEST_F(AttemptLivesTest, TheTimeLimitStopsAnAttemptAtItsTimeAndWakesForIt) {
  TestAttempt& attempt = ordered();
  lives_.listed();
  lives_.advance(kNow, [](TestAttempt&) {});
  lives_.started(attempt, kNow);
  lives_.judge_time_limit(attempt, kNow + base::seconds(59));
  EXPECT_FALSE(attempt.stop.has_value());
  EXPECT_EQ(lives_.next_due(), kNow + base::minutes(1));
  lives_.judge_time_limit(attempt, kNow + base::minutes(1));
  ASSERT_TRUE(attempt.stop.has_value());
  EXPECT_EQ(attempt.at_limit, base::minutes(1));
}

TEST_F(AttemptLivesTest, AStartWithoutNodesIsGivenUpAtItsTimeout) {
  TestAttempt& attempt = ordered();
  lives_.begin_start(attempt, kNow);
  lives_.judge_start_time(attempt, {.all_bound = true}, kNow + base::minutes(11));
  EXPECT_THAT(attempt.failed_start, IsEmpty());
  lives_.judge_start_time(attempt, {}, kNow + base::minutes(11));
  EXPECT_FALSE(attempt.failed_start.empty());
}

TEST_F(AttemptLivesTest, AnotherBootOfTheNodeIsAnotherNode) {
  TestAttempt& attempt = ordered();
  EXPECT_FALSE(lives_.is_for_another_boot(attempt));
  boot_id_ = "boot-2";
  EXPECT_TRUE(lives_.is_for_another_boot(attempt));
  lives_.end_without_node(attempt, kNow);
  EXPECT_EQ(attempt.ended->exit.lost, model::Lost::kNodeLost);
}

}  // namespace
}  // namespace gpu_platform::execution
