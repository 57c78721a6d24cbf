#include "execution/kubernetes/pods/idle_watch.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "execution/kubernetes/pods/pod_attempts_fixture.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {
namespace {

class IdleWatchTest : public ::testing::Test {
 protected:
  static std::int64_t at(base::Duration time) { return time.value(); }

  // A job that runs and tells so.
  void start(model::JobSpec spec) {
    attempts_.start(order_of_one(std::move(spec)), {}, begin_);
    attempts_.see(running_pod_of_one(begin_));
    watch_.attempt_started({.attempt = kOne}, at(base::seconds(100)));
  }
  static model::JobSpec that_may_be_idle() {
    model::JobSpec spec;
    spec.idle_timeout = base::minutes(10);
    return spec;
  }

  const base::Instant begin_ = base::Instant() + base::hours(1);
  PodAttempts attempts_{settings_of_one(), [](std::string_view) { return std::string("boot-1"); }};
  std::vector<std::string> followed_;
  IdleWatch watch_{attempts_, [this](const PodView& pod) { followed_.push_back(pod.name); }};
};

TEST_F(IdleWatchTest, FollowsAJobThatMayBeIdleFromItsStart) {
  start(that_may_be_idle());
  watch_.advance(at(base::seconds(99)));
  EXPECT_TRUE(followed_.empty());
  watch_.advance(at(base::seconds(100)));
  EXPECT_EQ(followed_, std::vector<std::string>{"gp-test-1-1-0"});
}

TEST_F(IdleWatchTest, FollowsItAgainEveryFiveSecondsForItsStreamMayHaveBroken) {
  start(that_may_be_idle());
  for (int second = 100; second <= 110; ++second) watch_.advance(at(base::seconds(second)));
  EXPECT_EQ(followed_.size(), 3u) << "at 100, 105 and 110 s";
}

TEST_F(IdleWatchTest, FollowsNoJobWithoutAnIdleTimeout) {
  start({});
  watch_.advance(at(base::seconds(200)));
  EXPECT_TRUE(followed_.empty());
}

TEST_F(IdleWatchTest, FollowsNoAttemptThatIsNotKnown) {
  watch_.attempt_started({.attempt = kOne}, at(base::seconds(100)));
  watch_.advance(at(base::seconds(200)));
  EXPECT_TRUE(followed_.empty());
}

TEST_F(IdleWatchTest, DropsAnAttemptWhosePodsHaveEnded) {
  start(that_may_be_idle());
  attempts_.see(ended_pod_of_one(begin_, base::minutes(1)));
  watch_.advance(at(base::seconds(100)));
  EXPECT_EQ(followed_.size(), 1u);
  watch_.advance(at(base::seconds(200)));
  EXPECT_EQ(followed_.size(), 1u);
}

}  // namespace
}  // namespace gpu_platform::execution
