#include "alerts/evaluator.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "alerts/alert_codec.h"
#include "alerts/alerts_fixture.h"
#include "base/prng.h"

namespace gpu_platform::alerts {
namespace {

Rule hot(base::Duration hold = base::minutes(1)) {
  Rule rule;
  rule.name = "Hot";
  rule.signal = Signal::kGpuTemperature;
  rule.threshold = 85;
  rule.clear = 80;
  rule.hold = hold;
  return rule;
}

Rule xid() {
  Rule rule;
  rule.name = "Xid";
  rule.signal = Signal::kGpuXid;
  return rule;
}

class EvaluatorTest : public testing::Test {
 protected:
  // Returns the turns that the temperature of the one GPU makes.
  std::vector<Turn> heat(Evaluator& evaluator, base::Duration at,
                         std::optional<std::int64_t> value) {
    return turns(evaluator.take("node n1", std::vector{fact(Signal::kGpuTemperature, gpu_, value)},
                                moment(at)));
  }
  std::vector<Turn> count(Evaluator& evaluator, base::Duration at,
                          std::optional<std::int64_t> value, bool from_zero = true) {
    Fact seen = fact(Signal::kGpuXid, gpu_, value);
    seen.counts_from_zero = from_zero;
    return turns(evaluator.take("node n1", std::vector{seen}, moment(at)));
  }
  static std::vector<Turn> turns(const Evaluator::Transitions& transitions) {
    std::vector<Turn> all;
    for (const Transition& each : transitions) all.push_back(each.turn);
    return all;
  }

  std::shared_ptr<const Subject> gpu_ = gpu_subject("n1", 3);
  const std::vector<Turn> nothing_;
};

TEST_F(EvaluatorTest, FiresAfterItsTimeAndIsResolvedAtTheClearThreshold) {
  Evaluator evaluator({hot()});
  EXPECT_EQ(heat(evaluator, base::seconds(0), 84), nothing_);
  EXPECT_EQ(heat(evaluator, base::seconds(5), 85), std::vector{Turn::kPending});
  EXPECT_EQ(heat(evaluator, base::seconds(60), 90), nothing_);
  EXPECT_EQ(heat(evaluator, base::seconds(65), 91), std::vector{Turn::kFired});
  EXPECT_EQ(heat(evaluator, base::seconds(70), 84), nothing_) << "hysteresis";
  EXPECT_EQ(heat(evaluator, base::seconds(75), 81), nothing_);
  EXPECT_EQ(heat(evaluator, base::seconds(80), 80), std::vector{Turn::kResolved});
  EXPECT_EQ(heat(evaluator, base::seconds(85), 84), nothing_);
}

TEST_F(EvaluatorTest, TheSentenceHasTheLatestValueAtWhichItHeld) {
  Evaluator evaluator({hot({})});
  heat(evaluator, base::seconds(0), 86);
  heat(evaluator, base::seconds(5), 97);
  const std::string id = fingerprint_of("Hot", "node n1", gpu_->key);
  ASSERT_NE(evaluator.find(id), nullptr);
  EXPECT_NE(evaluator.find(id)->alert.summary.find("97 °C"), std::string::npos);
  heat(evaluator, base::seconds(10), std::nullopt);
  EXPECT_NE(evaluator.find(id)->alert.summary.find("97 °C"), std::string::npos);
  const std::vector cool{fact(Signal::kGpuTemperature, gpu_, 60)};
  const auto over = evaluator.take("node n1", cool, moment(base::seconds(15)));
  ASSERT_EQ(turns(over), std::vector{Turn::kResolved});
  EXPECT_NE(over.front().alert.summary.find("97 °C"), std::string::npos);
}

TEST_F(EvaluatorTest, WhatComesBackBeforeItsTimeIsDropped) {
  Evaluator evaluator({hot()});
  heat(evaluator, base::seconds(0), 90);
  EXPECT_TRUE(evaluator.has_pending());
  EXPECT_EQ(heat(evaluator, base::seconds(30), 84), std::vector{Turn::kDropped});
  EXPECT_FALSE(evaluator.has_pending());
  heat(evaluator, base::seconds(40), 90);
  EXPECT_EQ(heat(evaluator, base::seconds(90), 90), nothing_) << "the time begins anew";
}

TEST_F(EvaluatorTest, WhatIsNotKnownNeitherFiresNorResolvesAndItsTimeDoesNotCount) {
  Evaluator evaluator({hot()});
  EXPECT_EQ(heat(evaluator, base::seconds(0), std::nullopt), nothing_);
  heat(evaluator, base::seconds(5), 90);
  heat(evaluator, base::seconds(35), 90);
  EXPECT_EQ(heat(evaluator, base::seconds(40), std::nullopt), nothing_);
  EXPECT_EQ(heat(evaluator, base::seconds(600), 90), nothing_);
  EXPECT_EQ(heat(evaluator, base::seconds(629), 90), nothing_);
  EXPECT_EQ(heat(evaluator, base::seconds(630), 90), std::vector{Turn::kFired});
  EXPECT_EQ(heat(evaluator, base::seconds(640), std::nullopt), nothing_);
  const Tracked* const tracked = evaluator.find(fingerprint_of("Hot", "node n1", gpu_->key));
  ASSERT_NE(tracked, nullptr);
  EXPECT_EQ(tracked->alert.state, State::kFiring);
  EXPECT_EQ(tracked->alert.value, std::nullopt);
}

TEST_F(EvaluatorTest, AWallClockThatIsSetChangesNoTimes) {
  Evaluator evaluator({hot()});
  const std::vector facts{fact(Signal::kGpuTemperature, gpu_, 90)};
  Moment now = moment({});
  evaluator.take("node n1", facts, now);
  now.at = now.at + base::hours(24);
  EXPECT_TRUE(evaluator.take("node n1", facts, now).empty()) << "a day ahead";
  now.at = now.at + base::hours(-48);
  now.steady = now.steady + base::seconds(59);
  EXPECT_TRUE(evaluator.take("node n1", facts, now).empty()) << "a day back";
  now.steady = now.steady + base::seconds(1);
  EXPECT_EQ(turns(evaluator.take("node n1", facts, now)), std::vector{Turn::kFired});
  now.at = now.at + base::hours(-1);
  EXPECT_TRUE(evaluator.take("node n1", facts, now).empty());
}

TEST_F(EvaluatorTest, ASourceThatIsForgottenLeavesNothing) {
  Evaluator evaluator({xid()});
  EXPECT_EQ(count(evaluator, {}, 5, false), nothing_);
  EXPECT_EQ(evaluator.sources(), std::vector<std::string>{"node n1"}) << "its counts are kept";
  EXPECT_EQ(turns(evaluator.forget("node n1", moment(base::seconds(5)))), nothing_);
  EXPECT_TRUE(evaluator.sources().empty());
}

TEST_F(EvaluatorTest, ASubjectThatIsGoneIsResolved) {
  Evaluator evaluator({hot({})});
  EXPECT_EQ(heat(evaluator, {}, 90), std::vector{Turn::kFired});
  EXPECT_EQ(turns(evaluator.take("node n2", {}, moment({}))), nothing_) << "another source";
  EXPECT_EQ(turns(evaluator.take("node n1", {}, moment(base::seconds(5)))),
            std::vector{Turn::kResolved});
  EXPECT_EQ(heat(evaluator, base::seconds(10), 90), std::vector{Turn::kFired});
  EXPECT_EQ(turns(evaluator.forget("node n1", moment(base::seconds(15)))),
            std::vector{Turn::kResolved});
}

TEST_F(EvaluatorTest, EachGrowthOfACounterFiresAndIsOverWhenItIsQuiet) {
  Evaluator evaluator({xid()});
  EXPECT_EQ(count(evaluator, base::minutes(0), 0), nothing_);
  EXPECT_EQ(count(evaluator, base::minutes(1), 1), std::vector{Turn::kFired});
  EXPECT_EQ(count(evaluator, base::minutes(2), 1), nothing_);
  EXPECT_EQ(count(evaluator, base::minutes(10), 3), std::vector{Turn::kGrew});
  EXPECT_EQ(count(evaluator, base::minutes(24), 3), nothing_) << "it has grown 14 minutes ago";
  EXPECT_EQ(count(evaluator, base::minutes(25), 3), std::vector{Turn::kResolved});
  EXPECT_EQ(count(evaluator, base::minutes(26), 4), std::vector{Turn::kFired});
}

TEST_F(EvaluatorTest, ACounterThatWasRestartedHasGrownByWhatItHas) {
  Evaluator evaluator({xid()});
  EXPECT_EQ(count(evaluator, {}, 7, false), nothing_) << "of before the daemon's start";
  EXPECT_EQ(count(evaluator, base::seconds(5), 0, false), nothing_);
  EXPECT_EQ(count(evaluator, base::seconds(10), 2, false), std::vector{Turn::kFired});
  EXPECT_EQ(count(evaluator, base::seconds(15), std::nullopt, false), nothing_);
  EXPECT_EQ(count(evaluator, base::seconds(20), 2, false), nothing_);
}

TEST_F(EvaluatorTest, TheFirstErrorOfACounterFromZeroCounts) {
  Evaluator evaluator({xid()});
  EXPECT_EQ(count(evaluator, {}, 1), std::vector{Turn::kFired});
}

TEST_F(EvaluatorTest, RulesAreForTheirTypesAndNodes) {
  Rule rule = hot({});
  rule.types = {"A100"};
  Evaluator evaluator({rule});
  EXPECT_EQ(heat(evaluator, {}, 99), nothing_);
  rule.types = {"H100"};
  rule.nodes = {"n*"};
  evaluator.set_rules({rule}, moment({}));
  EXPECT_EQ(heat(evaluator, {}, 99), std::vector{Turn::kFired});
  rule.is_enabled = false;
  EXPECT_EQ(turns(evaluator.set_rules({rule}, moment({}))), std::vector{Turn::kResolved});
  EXPECT_EQ(heat(evaluator, {}, 99), nothing_);
}

TEST_F(EvaluatorTest, GoesOnAfterARestartWithTheSameFingerprint) {
  Evaluator before({hot()});
  heat(before, {}, 90);
  heat(before, base::seconds(40), 90);
  const std::string id = fingerprint_of("Hot", "node n1", gpu_->key);
  const auto kept = decode_tracked(encode(*before.find(id)));
  ASSERT_TRUE(kept);
  Evaluator after({hot()});
  after.restore(*kept);
  EXPECT_EQ(after.sources(), std::vector<std::string>{"node n1"});
  EXPECT_EQ(heat(after, base::hours(5), 90), nothing_) << "the time between does not count";
  EXPECT_EQ(heat(after, base::hours(5) + base::seconds(20), 90), std::vector{Turn::kFired});
  EXPECT_NE(after.find(id), nullptr);
}

TEST_F(EvaluatorTest, TheOrderOfFactsDoesNotMatterAndNoAlertFiresTwiceWithoutAnEnd) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    base::Prng random(seed);
    Evaluator forward({hot(base::seconds(10)), xid()});
    Evaluator backward({xid(), hot(base::seconds(10))});
    std::set<std::string> firing;
    std::map<int, std::int64_t> counts;
    for (int step = 0; step < 200; ++step) {
      std::vector<Fact> facts;
      for (int gpu = 0; gpu < 4; ++gpu) {
        const auto subject = gpu_subject("n1", gpu);
        const std::uint64_t kind = random.below(8);
        if (kind == 0) continue;  // gone for a moment
        facts.push_back(
            fact(Signal::kGpuTemperature, subject,
                 kind == 1 ? std::nullopt : std::optional<std::int64_t>(75 + random.below(20))));
        if (kind == 2) ++counts[gpu];
        facts.push_back(fact(Signal::kGpuXid, subject, counts[gpu]));
        facts.back().counts_from_zero = true;
      }
      const Moment now = moment(base::seconds(step * 7));
      auto one = forward.take("node n1", facts, now);
      std::ranges::reverse(facts);
      auto other = backward.take("node n1", facts, now);
      const auto by_id = [](const Transition& each) {
        return std::pair(each.alert.fingerprint, each.turn);
      };
      std::ranges::sort(one, {}, by_id);
      std::ranges::sort(other, {}, by_id);
      ASSERT_EQ(one.size(), other.size()) << "seed " << seed << " step " << step;
      for (std::size_t i = 0; i < one.size(); ++i) {
        ASSERT_EQ(one[i].turn, other[i].turn);
        ASSERT_EQ(one[i].alert, other[i].alert);
        if (one[i].turn == Turn::kFired) {
          ASSERT_TRUE(firing.insert(one[i].alert.fingerprint).second);
        } else if (one[i].turn == Turn::kResolved) {
          ASSERT_EQ(firing.erase(one[i].alert.fingerprint), 1U);
        } else if (one[i].turn == Turn::kGrew) {
          ASSERT_TRUE(firing.contains(one[i].alert.fingerprint));
        }
      }
    }
  }
}

}  // namespace
}  // namespace gpu_platform::alerts
