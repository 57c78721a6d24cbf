#include "bin/alert_facts.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "bin/idle_watch.h"
#include "model/job_spec.h"

namespace gpu_platform::bin {
namespace {

using alerts::Fact;
using alerts::Signal;

constexpr base::Instant kNoon{1'798'718'400'000'000'000};

class AlertFactsTest : public testing::Test {
 protected:
  AlertFactsTest() {
    node_.id = model::NodeId(1);
    node_.name = "n1";
    node_.network.rack = "r2";
    for (int i = 0; i < 2; ++i) {
      model::Gpu gpu;
      gpu.info.uuid = "GPU-" + std::to_string(i);
      gpu.info.type = "H100-80GB";
      node_.gpus.push_back(gpu);
    }
    reading_.at = kNoon;
    reading_.temperature_c = 91;
    reading_.memory_used = base::kGiB * 72;
    reading_.memory_total = base::kGiB * 80;
    reading_.throttle_reasons = model::kThrottleHeatHardware | model::kThrottleHardware;
    reading_.xid_counts = {{79, 2}, {31, 5}};
    reading_.xids = {{31, kNoon}, {79, kNoon}};
    reading_.utilization_percent = 0;
  }
  ReadingOf readings() {
    return [this](std::string_view uuid) -> std::shared_ptr<const model::GpuReading> {
      return uuid == "GPU-0" ? std::make_shared<const model::GpuReading>(reading_) : nullptr;
    };
  }
  // Returns the fact about the GPU; the node for an empty UUID.
  Fact of(Signal signal, const std::string& uuid = "GPU-0", base::Instant now = kNoon) {
    NodeFacts facts(readings());
    const std::vector<Fact> all = facts.of(node_, now);
    const auto found = std::ranges::find_if(all, [&](const Fact& fact) {
      const auto gpu = fact.subject->labels.find("gpu");
      const std::string named = gpu == fact.subject->labels.end() ? "" : gpu->second;
      return fact.signal == signal && named == uuid;
    });
    EXPECT_NE(found, all.end());
    return found == all.end() ? Fact{} : *found;
  }

  model::Node node_;
  model::GpuReading reading_;
};

TEST_F(AlertFactsTest, AReadingBecomesValuesOfItsGpu) {
  const Fact heat = of(Signal::kGpuTemperature);
  EXPECT_EQ(heat.value, 91);
  EXPECT_EQ(heat.subject->labels, (alerts::Labels{{"gpu", "GPU-0"},
                                                  {"gpu_index", "0"},
                                                  {"node", "n1"},
                                                  {"rack", "r2"},
                                                  {"type", "H100-80GB"}}));
  EXPECT_EQ(of(Signal::kGpuMemory).value, 90);
  EXPECT_EQ(of(Signal::kGpuHeatSlowdown).value, 1);
  EXPECT_EQ(of(Signal::kGpuThrottled).value, 1);
  EXPECT_EQ(of(Signal::kGpuEcc).value, std::nullopt) << "the driver does not say";
  EXPECT_EQ(of(Signal::kGpuTemperature, "GPU-1").value, std::nullopt);
}

TEST_F(AlertFactsTest, OnlyXidsThatAreNotOfProgramsAreCritical) {
  const Fact xids = of(Signal::kGpuXid);
  EXPECT_EQ(xids.value, 2);
  EXPECT_TRUE(xids.counts_from_zero);
  EXPECT_EQ(xids.detail, "the latest is XID 79");
}

TEST_F(AlertFactsTest, AnOldReadingAndAGpuThatDoesNotAnswerSayNothing) {
  EXPECT_EQ(of(Signal::kGpuTemperature, "GPU-0", kNoon + base::minutes(3)).value, std::nullopt);
  EXPECT_EQ(of(Signal::kGpuTemperature, "GPU-0", kNoon + base::hours(-1)).value, 91)
      << "the clock was set back";
  reading_.problem = "GPU is lost";
  EXPECT_EQ(of(Signal::kGpuTemperature).value, std::nullopt);
  EXPECT_EQ(of(Signal::kGpuXid).value, 2) << "events are counted all the same";
}

TEST_F(AlertFactsTest, AGpuThatAPersonTookOutIsNoAlert) {
  const auto taint = [](model::TaintSource source, model::TaintEffect effect) {
    model::Taint made;
    made.source = source;
    made.effect = effect;
    made.text = "sick";
    return made;
  };
  EXPECT_EQ(of(Signal::kGpuOutOfService).value, 0);
  node_.gpus[0].taints = {taint(model::TaintSource::kHealth, model::TaintEffect::kDegraded)};
  EXPECT_EQ(of(Signal::kGpuOutOfService).value, 1);
  EXPECT_EQ(of(Signal::kGpuOutOfService).detail, "sick");
  node_.gpus[0].taints = {taint(model::TaintSource::kHealth, model::TaintEffect::kAvoided)};
  EXPECT_EQ(of(Signal::kGpuOutOfService).value, 0) << "heat has rules of its own";
  node_.gpus[0].taints = {taint(model::TaintSource::kOperator, model::TaintEffect::kOut),
                          taint(model::TaintSource::kHealth, model::TaintEffect::kDegraded)};
  EXPECT_EQ(of(Signal::kGpuOutOfService).value, 0);
}

TEST_F(AlertFactsTest, ALostNodeSaysWhy) {
  EXPECT_EQ(of(Signal::kNodeLost, "").value, 0);
  node_.state = model::NodeState::kLost;
  node_.cause = "it does not report";
  const Fact lost = of(Signal::kNodeLost, "");
  EXPECT_EQ(lost.value, 1);
  EXPECT_EQ(lost.detail, "it does not report");
}

// One job on the first GPU, which is idle.
class IdleWatchTest : public AlertFactsTest {
 protected:
  IdleWatchTest() {
    model::Job job;
    job.id = model::JobId(7);
    auto spec = std::make_shared<model::JobSpec>();
    spec->user = "ann";
    spec->team = "vision";
    job.spec = std::move(spec);
    model::Attempt attempt;
    attempt.number = 1;
    attempt.state = model::AttemptState::kRunning;
    attempt.started_at = kNoon + base::hours(-10);
    job.attempts.push_back(attempt);
    snapshot_.jobs.put(7, job);
    hold(base::kWholeGpu);
  }
  void hold(base::GpuShare share) {
    node_.gpus[0].holders = {{.attempt = id_, .share = share, .memory = {}}};
    snapshot_.nodes.put(1, node_);
  }
  // Looks each half minute; returns what was to be done.
  std::vector<IdleWatch::Act> look(base::Duration time) {
    std::vector<IdleWatch::Act> acts;
    for (base::Duration passed; passed < time; passed += base::seconds(30)) {
      now_.at = now_.at + base::seconds(30);
      now_.steady = now_.steady + base::seconds(30);
      reading_.at = now_.at;
      facts_ = watch_.look(snapshot_, rules_, now_, acts);
    }
    return acts;
  }

  const model::AttemptId id_{model::JobId(7), 1};
  controller::Snapshot snapshot_;
  IdleWatch::Rules rules_{
      .idle = {}, .action = config::IdleAction::kStop, .warn_before = base::minutes(10)};
  IdleWatch watch_{readings()};
  alerts::Moment now_{kNoon, base::Instant(base::hours(9).value())};
  std::vector<Fact> facts_;
};

TEST_F(IdleWatchTest, AnIdleJobIsWarnedAndThenStopped) {
  EXPECT_TRUE(look(base::minutes(29)).empty());
  ASSERT_EQ(facts_.size(), 1U);
  EXPECT_EQ(facts_[0].value, std::nullopt) << "it may have been idle before";
  const auto warned = look(base::minutes(3));
  ASSERT_EQ(warned.size(), 1U);
  EXPECT_FALSE(warned[0].is_stop);
  EXPECT_EQ(warned[0].stops_in, base::minutes(10));
  EXPECT_EQ(facts_[0].value, 1);
  EXPECT_EQ(facts_[0].subject->labels,
            (alerts::Labels{{"job", "7"}, {"team", "vision"}, {"user", "ann"}}));
  EXPECT_TRUE(look(base::minutes(7)).empty());
  const auto stopped = look(base::minutes(3));
  ASSERT_FALSE(stopped.empty());
  EXPECT_TRUE(stopped[0].is_stop);
  EXPECT_EQ(stopped[0].attempt, id_);
}

TEST_F(IdleWatchTest, AJobThatWorksAgainAfterItsWarningIsNotStopped) {
  ASSERT_EQ(look(base::minutes(32)).size(), 1U);
  reading_.utilization_percent = 90;
  EXPECT_TRUE(look(base::minutes(20)).empty());
  EXPECT_EQ(facts_[0].value, 0);
}

TEST_F(IdleWatchTest, TheSiteMayOnlyTellOrWarn) {
  rules_.action = config::IdleAction::kTell;
  EXPECT_TRUE(look(base::minutes(60)).empty());
  EXPECT_EQ(facts_[0].value, 1);
  rules_.action = config::IdleAction::kWarn;
  const auto acts = look(base::minutes(60));
  ASSERT_EQ(acts.size(), 1U);
  EXPECT_FALSE(acts[0].is_stop);
  EXPECT_EQ(acts[0].stops_in, base::Duration());
}

TEST_F(IdleWatchTest, APartOfAGpuIsKnownByItsUseAlone) {
  hold(base::GpuShare(3500));
  EXPECT_TRUE(look(base::hours(3)).empty()) << "the reading is of the whole GPU";
  EXPECT_EQ(facts_[0].value, std::nullopt);
  telemetry::Frame frame;
  frame.subject = {telemetry::Of::kUse, "n1", "GPU-0", id_};
  frame.at = now_.at;
  frame.values = {{*telemetry::metric_named(telemetry::Of::kUse, telemetry::kUseUtilization), 40}};
  watch_.take_use(frame);
  look(base::seconds(30));
  EXPECT_EQ(facts_[0].value, 0);
}

TEST_F(IdleWatchTest, AnAttemptThatHasEndedIsForgotten) {
  look(base::minutes(1));
  ASSERT_EQ(facts_.size(), 1U);
  node_.gpus[0].holders.clear();
  snapshot_.nodes.put(1, node_);
  look(base::seconds(30));
  EXPECT_TRUE(facts_.empty());
}

TEST_F(IdleWatchTest, TheLongestWaitIsThatOfQueuedJobs) {
  EXPECT_EQ(longest_wait(snapshot_, kNoon), base::Duration());
  model::Job waiting = *snapshot_.jobs.find(7);
  waiting.id = model::JobId(8);
  waiting.state = model::JobState::kQueued;
  waiting.eligible_at = kNoon + base::minutes(-12);
  snapshot_.jobs.put(8, waiting);
  waiting.state = model::JobState::kHeld;
  waiting.eligible_at = kNoon + base::hours(-9);
  snapshot_.jobs.put(9, waiting);
  snapshot_.counts.queued = 1;
  EXPECT_EQ(longest_wait(snapshot_, kNoon), base::minutes(12));
  EXPECT_EQ(longest_wait(snapshot_, kNoon + base::hours(-1)), base::Duration());
}

}  // namespace
}  // namespace gpu_platform::bin
