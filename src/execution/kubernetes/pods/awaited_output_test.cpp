#include "execution/kubernetes/pods/awaited_output.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "execution/kubernetes/pods/pod_attempts_fixture.h"

namespace gpu_platform::execution {
namespace {

class AwaitedOutputTest : public ::testing::Test {
 protected:
  // A pod that has run and ended, so that what it printed is to be fetched.
  void end() {
    attempts_.start(order_of_one(), {}, begin_);
    attempts_.adopt({}, begin_);
    attempts_.see(ended_pod_of_one(begin_, base::minutes(1)));
    attempts_.listed();
    attempts_.advance(begin_ + base::minutes(2));
    awaited_.attempt_ended(kOne, kEndNs);
  }
  void fetch() {
    for (const Call& call : attempts_.take_calls()) {
      ASSERT_EQ(call.kind, CallKind::kFetchOutput);
      attempts_.answer(call.id, {.status = 200}, begin_ + base::minutes(2));
    }
  }
  static std::int64_t after(base::Duration time) { return kEndNs + time.value(); }

  static constexpr std::int64_t kEndNs = 1'000'000;
  const base::Instant begin_ = base::Instant() + base::hours(1);
  PodAttempts attempts_{settings_of_one(), [](std::string_view) { return std::string("boot-1"); }};
  std::vector<model::AttemptId> forgotten_;
  AwaitedOutput awaited_{attempts_, [this](model::AttemptId id) { forgotten_.push_back(id); }};
};

TEST_F(AwaitedOutputTest, IsAwaitedFromTheEndUntilItWasFetched) {
  EXPECT_FALSE(awaited_.is_awaited(kOne, kEndNs));
  end();
  awaited_.drop_complete();
  EXPECT_TRUE(awaited_.is_awaited(kOne, kEndNs));
  fetch();
  awaited_.drop_complete();
  EXPECT_FALSE(awaited_.is_awaited(kOne, kEndNs));
}

TEST_F(AwaitedOutputTest, IsAwaitedForHalfAMinuteAtMost) {
  end();
  EXPECT_TRUE(awaited_.is_awaited(kOne, after(base::seconds(29))));
  EXPECT_FALSE(awaited_.is_awaited(kOne, after(base::seconds(30))));
}

TEST_F(AwaitedOutputTest, OfAnAttemptWithoutAPodIsNotAwaited) {
  attempts_.start(order_of_one(), {}, begin_);
  awaited_.attempt_ended(kOne, kEndNs);
  EXPECT_FALSE(awaited_.is_awaited(kOne, kEndNs));
}

TEST_F(AwaitedOutputTest, IsForgottenOnceWhenItIsThere) {
  end();
  awaited_.attempt_forgotten(kOne);
  awaited_.drop_complete();
  EXPECT_TRUE(forgotten_.empty()) << "it is still being fetched";
  fetch();
  awaited_.drop_complete();
  awaited_.drop_complete();
  EXPECT_EQ(forgotten_, std::vector<model::AttemptId>{kOne});
}

}  // namespace
}  // namespace gpu_platform::execution
