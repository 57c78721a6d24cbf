#include "execution/kubernetes/pods/pod_attempts.h"

#include <algorithm>
#include <optional>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "execution/kubernetes/pods/pod_attempts_fixture.h"
#include "model/job_spec.h"

// What the simulated faults found, each alone.

namespace gpu_platform::execution {
namespace {

using model::AttemptState;

class PodAttemptsTest : public ::testing::Test {
 protected:
  void list() {
    attempts_.begin_list();
    if (pod_) attempts_.see(*pod_);
    attempts_.listed();
  }

  static StartOrder order() { return order_of_one(); }
  static PodView pod() { return pod_of_one(); }
  PodView ended_after(base::Duration time) const { return ended_pod_of_one(start_, time); }

  // Does what is due, and answers each call with success.
  void advance(base::Instant now) {
    for (int i = 0; i < 10; ++i) {
      attempts_.advance(now);
      for (Observation& each : attempts_.take_observations()) told_.push_back(std::move(each));
      for (const Call& call : attempts_.take_calls()) {
        kinds_.push_back(call.kind);
        attempts_.answer(call.id, {.status = 200}, now);
      }
    }
  }
  const Ended* ended() const {
    for (const Observation& each : told_) {
      if (const auto* found = std::get_if<Ended>(&each)) return found;
    }
    return nullptr;
  }
  bool has_called(CallKind kind) const { return std::ranges::count(kinds_, kind) > 0; }

  const base::Instant start_ = base::Instant() + base::hours(1);
  PodAttempts attempts_{settings_of_one(), [](std::string_view) { return std::string("boot-1"); }};
  std::optional<PodView> pod_;
  std::vector<Observation> told_;
  std::vector<CallKind> kinds_;
};

TEST_F(PodAttemptsTest, AnEndBeforeTheTimeLimitIsItsOwnHoweverLateItIsKnown) {
  pod_ = ended_after(base::seconds(50));
  attempts_.adopt({{order(), AttemptState::kRunning}}, start_);
  list();
  advance(start_ + base::hours(2));
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(ended()->reason, model::EndReason::kNone);
  EXPECT_EQ(ended()->exit.code, 0);
}

TEST_F(PodAttemptsTest, OneThatEndsWhenItIsDeletedAtItsLimitHasTimedOut) {
  pod_ = ended_after(base::seconds(61));
  attempts_.adopt({{order(), AttemptState::kRunning}}, start_);
  list();
  advance(start_ + base::hours(2));
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(ended()->reason, model::EndReason::kTimeLimit);
}

// kube-scheduler binds pods one after the other: 8,000 that were made together took 16 minutes.
TEST_F(PodAttemptsTest, AStartIsNotTakenBackWhileTheSchedulerIsBusyWithOthers) {
  attempts_.adopt({}, start_);
  list();
  StartOrder other = order();
  other.attempt = {model::JobId(2), 1};
  attempts_.start(order(), {}, start_);
  attempts_.start(other, {}, start_);
  PodView waits = pod();
  waits.node.clear();
  PodView before = waits;
  before.attempt = other.attempt;
  before.name = "gp-test-2-1-0";
  before.uid = "uid-2";
  attempts_.see(waits);
  attempts_.see(before);
  advance(start_ + base::minutes(8));
  before.node = "node-2";
  attempts_.see(before);
  advance(start_ + base::minutes(8));
  advance(start_ + base::minutes(17));
  EXPECT_FALSE(has_called(CallKind::kDeletePod));
  advance(start_ + base::minutes(19));
  EXPECT_TRUE(has_called(CallKind::kDeletePod)) << "no other pod gets a node either";
}

TEST_F(PodAttemptsTest, AStartThatTheSchedulerHasLookedAtHasItsTimeWhateverOthersGet) {
  attempts_.adopt({}, start_);
  list();
  attempts_.start(order(), {}, start_);
  PodView waits = pod();
  waits.node.clear();
  waits.waiting = "Unschedulable: 0/3 nodes are available";
  attempts_.see(waits);
  advance(start_ + base::minutes(1));
  StartOrder other = order();
  other.attempt = {model::JobId(2), 1};
  attempts_.start(other, {}, start_);
  PodView others_pod = pod();
  others_pod.attempt = other.attempt;
  others_pod.name = "gp-test-2-1-0";
  others_pod.uid = "uid-2";
  attempts_.see(others_pod);
  advance(start_ + base::minutes(8));
  EXPECT_FALSE(has_called(CallKind::kDeletePod));
  advance(start_ + base::minutes(11));
  EXPECT_TRUE(has_called(CallKind::kDeletePod));
}

TEST_F(PodAttemptsTest, OneWithoutInputAndOutputForItsIdleTimeoutIsStopped) {
  model::JobSpec spec;
  spec.idle_timeout = base::minutes(10);
  StartOrder idle = order_of_one(spec);
  idle.time_limit = base::Duration();
  pod_ = running_pod_of_one(start_);
  // A daemon that was away does not know what was typed meanwhile.
  const base::Instant back = start_ + base::hours(1);
  attempts_.adopt({{idle, AttemptState::kRunning}}, back);
  list();
  advance(back);
  EXPECT_EQ(attempts_.next_due(), back + base::minutes(10));
  attempts_.note_activity(kOne, back + base::minutes(9));
  advance(back + base::minutes(11));
  EXPECT_FALSE(has_called(CallKind::kDeletePod));
  advance(back + base::minutes(20));
  EXPECT_TRUE(has_called(CallKind::kDeletePod));
  PodView ended = ended_after(base::minutes(80));
  ended.exit_code = 143;
  ended.is_being_deleted = true;
  attempts_.see(ended);
  advance(back + base::minutes(20));
  ASSERT_NE(this->ended(), nullptr);
  EXPECT_EQ(this->ended()->reason, model::EndReason::kIdleTimeout);
}

// The API server marks a pod as deleted, then removes it: a request that ends between the two, as
// with the daemon, leaves a pod that Kubernetes removes at the next request alone.
TEST_F(PodAttemptsTest, APodWhoseRemovalWasCutOffIsRemovedByTheNextDaemon) {
  pod_ = ended_after(base::seconds(50));
  pod_->is_being_deleted = true;
  pod_->finalizer_at.reset();
  attempts_.adopt({{order(), AttemptState::kRunning}}, start_);
  list();
  advance(start_ + base::minutes(5));
  attempts_.forget({kOne});
  advance(start_ + base::minutes(6));
  EXPECT_EQ(std::ranges::count(kinds_, CallKind::kDeletePod), 1);
}

TEST_F(PodAttemptsTest, OneThatWasStoppedBeforeAnythingWasMadeIsNotLost) {
  attempts_.adopt({{order(), AttemptState::kStopping}}, start_);
  attempts_.stop({kOne, true, {}, model::EndReason::kCancelledBy});
  list();
  advance(start_);
  ASSERT_NE(ended(), nullptr);
  EXPECT_EQ(ended()->reason, model::EndReason::kLaunchFailed);
  EXPECT_EQ(ended()->exit.lost, model::Lost::kNo);
}

// The daemon before may have asked for the same pod. Its call comes late, and would make the pod of
// an attempt that is over once more.
TEST_F(PodAttemptsTest, APodThatIsMadeAfterARestartKeepsItsNameUntilNoEarlierCallCanArrive) {
  StartOrder endless = order();
  endless.time_limit = {};
  attempts_.adopt({{endless, AttemptState::kRequested}}, start_);
  list();
  attempts_.start(endless, {}, start_);
  advance(start_);
  ASSERT_TRUE(has_called(CallKind::kMakePod));
  attempts_.see(ended_after(base::seconds(1)));
  advance(start_ + base::seconds(2));
  ASSERT_NE(ended(), nullptr);
  attempts_.forget({kOne});
  advance(start_ + base::seconds(59));
  EXPECT_FALSE(has_called(CallKind::kReleasePod));
  EXPECT_EQ(attempts_.next_due(), start_ + base::seconds(60));
  advance(start_ + base::seconds(60));
  EXPECT_TRUE(has_called(CallKind::kReleasePod));
}

TEST_F(PodAttemptsTest, APodOfAStartThatOneDaemonOrderedIsReleasedAtOnce) {
  attempts_.adopt({}, start_);
  list();
  attempts_.start(order(), {}, start_);
  advance(start_);
  attempts_.see(ended_after(base::seconds(1)));
  advance(start_ + base::seconds(2));
  attempts_.forget({kOne});
  advance(start_ + base::seconds(2));
  EXPECT_TRUE(has_called(CallKind::kReleasePod));
}

TEST_F(PodAttemptsTest, AfterTheTimeoutOfItsImageItAsksForNoTimeThatHasPassed) {
  pod_ = pod();
  pod_->is_image_error = true;
  pod_->waiting = "ImagePullBackOff: the registry does not answer";
  attempts_.adopt({{order(), AttemptState::kRequested}}, start_);
  list();
  advance(start_);
  const base::Instant late = start_ + base::minutes(6);
  advance(late);
  EXPECT_TRUE(has_called(CallKind::kDeletePod));
  const base::Instant due = attempts_.next_due();
  EXPECT_TRUE(!due.is_set() || due > late);
}

}  // namespace
}  // namespace gpu_platform::execution
