#include "views/predicted_starts.h"

#include <map>

#include <gtest/gtest.h>

#include "base/prng.h"
#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"
#include "model/job_spec.h"
#include "views/explanation.h"
#include "views/planned_starts.h"

namespace gpu_platform::views {
namespace {

namespace testing = controller::testing;

using testing::kNoon;

// Jobs of a few names that run for as long as they like on two nodes, on virtual time.
class Site {
 public:
  explicit Site(std::uint64_t seed) : random_(seed) {
    model::Policy policy;
    policy.max_queue_size = 30;
    core_.apply_policy(policy, "test", now_);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 4)}, now_);
    core_.observe(execution::NodeObserved{testing::node_info("n2", 2)}, now_);
  }

  controller::Core& core() { return core_; }
  base::Instant now() const { return now_; }

  void step() {
    if (random_.chance(1, 2)) submit();
    const bool is_next = !ends_.empty() && random_.chance(1, 2);
    if (is_next) {
      now_ = std::max(now_, ends_.begin()->first);
      const model::AttemptId id = ends_.begin()->second;
      ends_.erase(ends_.begin());
      core_.observe(testing::ended(id, random_.chance(1, 5) ? 1 : 0, now_), now_);
      core_.observe(execution::Cleaned{id}, now_);
    } else {
      now_ = now_ + base::seconds(static_cast<std::int64_t>(random_.below(200)));
      if (!ends_.empty()) now_ = std::min(now_, ends_.begin()->first);
    }
    settle();
  }

 private:
  void submit() {
    model::JobSpec spec = testing::spec(static_cast<std::uint32_t>(1 + random_.below(4)));
    spec.name = random_.chance(1, 2) ? "train" : "test";
    spec.time_limit = base::minutes(static_cast<std::int64_t>(10 + random_.below(60)));
    if (random_.chance(1, 4)) spec.expected_time = base::Duration(spec.time_limit.value() / 3);
    (void)core_.command(testing::submission(spec), now_, store::Headroom::kAmple);
    settle();
  }

  void settle() {
    core_.advance(now_);
    const controller::Batch batch = core_.take_batch();
    for (const controller::Effect& effect : batch.effects) {
      const auto* start = std::get_if<execution::StartOrder>(&effect);
      if (start == nullptr) continue;
      core_.observe(execution::Started{start->attempt, 7, now_}, now_);
      const auto most = static_cast<std::uint64_t>(start->time_limit.value());
      ends_.emplace(now_ + base::Duration(static_cast<std::int64_t>(1 + random_.below(most))),
                    start->attempt);
    }
  }

  base::Prng random_;
  controller::Core core_;
  base::Instant now_ = kNoon;
  std::multimap<base::Instant, model::AttemptId> ends_;
};

TEST(PredictionOfAQueue, IsNeverLaterThanWhatIsPromised) {
  std::size_t predicted = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Site site(seed);
    for (int i = 0; i < 80; ++i) {
      site.step();
      PlanningView view(site.core().snapshot());
      const PlannedStarts promised = plan_all_starts(view);
      for (const auto& [job, start] : promised) {
        if (i % 10 != 0) continue;
        const Explanation found = explain_waiting(view, job, site.now(), Effort::kThorough);
        if (!found.predicted || !found.planned) continue;
        ++predicted;
        EXPECT_LE(found.predicted->start.p50, found.predicted->start.p90);
        EXPECT_LE(found.predicted->start.p50, found.planned->start) << "seed " << seed;
        if (guaranteed_start(view.snapshot()) == job) {
          EXPECT_LE(found.predicted->start.p90, found.planned->start) << "seed " << seed;
          EXPECT_FALSE(found.planned->trust);
        } else if (found.planned->trust) {
          EXPECT_GE(found.planned->trust->p90, found.planned->start);
        }
        EXPECT_GE(found.predicted->start.p50, site.now());
      }
    }
  }
  EXPECT_GT(predicted, 100U);
}

TEST(PredictionOfAQueue, WhatIsKnownOfRunsAndPredictionsSurvivesASnapshot) {
  std::uint64_t scored = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Site site(seed);
    for (int i = 0; i < 200; ++i) site.step();
    const controller::State& state = site.core().state();
    EXPECT_TRUE(controller::check_invariants(state).empty())
        << controller::check_invariants(state).front();
    const auto again = controller::decode_state(controller::encode_state(state));
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(state_hash(*again), state_hash(state));
    EXPECT_EQ(again->books->history, state.books->history);
    EXPECT_EQ(*again->scores, *state.scores);
    for (const auto basis :
         {model::PredictionBasis::kHardLimits, model::PredictionBasis::kHistory}) {
      scored += state.scores->errors(basis).starts;
    }
  }
  EXPECT_GT(scored, 100U);
}

// If jobs follow one another closely, the prediction comes a little later, and then for the jobs
// that are left.
TEST(PredictionOfAQueue, ComesSoonAfterTheLastOneAlsoForAPlaceThatIsOverdue) {
  controller::Core core;
  base::Instant now = kNoon;
  core.apply_policy(model::Policy(), "test", now);
  core.observe(execution::NodeObserved{testing::node_info("n1", 8)}, now);
  model::JobSpec spec = testing::spec(1);
  spec.time_limit = base::minutes(1);
  spec.expected_time = base::seconds(30);
  const auto submit = [&] {
    EXPECT_TRUE(core.command(testing::submission(spec), now, store::Headroom::kAmple));
    core.advance(now);
  };
  for (std::uint64_t id = 1; id <= 8; ++id) {
    submit();
    core.observe(execution::Started{{model::JobId(id), 1}, 7, now}, now);
    core.advance(now);
  }
  const auto predicted_starts_of = [&](std::uint64_t id) {
    return core.state().jobs.find(id)->prediction;
  };

  // Right before all are over by all that is known.
  now = now + (base::minutes(1) + model::Policy().stop_grace - base::milliseconds(50));
  for (std::uint64_t id = 9; id <= 12; ++id) {
    submit();
    EXPECT_TRUE(predicted_starts_of(id));
  }
  submit();
  EXPECT_FALSE(predicted_starts_of(13));
  const auto wakeup = core.next_wakeup();
  ASSERT_TRUE(wakeup);
  EXPECT_EQ(*wakeup, now + base::milliseconds(100));
  (void)core.take_batch();
  core.advance(*wakeup);
  EXPECT_TRUE(predicted_starts_of(13));
  EXPECT_TRUE(controller::check_invariants(core.state()).empty())
      << controller::check_invariants(core.state()).front();
}

TEST(PredictionOfAQueue, ADamagedHistoryIsNotRead) {
  controller::Core core;
  core.apply_policy(model::Policy(), "test", kNoon);
  const std::string bytes = controller::encode_state(core.state());
  // Before the end are no errors of starts, a number for each bound and depth; no teams, no tokens
  // and the last id of one; no attempts with changed limits; the scores of three bases, three
  // numbers each; and an empty history.
  const std::size_t scores = bytes.size() - scheduling::kStartBounds * scheduling::kDepths - 4 - 9;
  const std::size_t history = scores - 1;
  ASSERT_EQ(bytes[history], 0);
  std::string damaged = bytes;
  damaged[history] = 1;
  EXPECT_FALSE(controller::decode_state(damaged));
  damaged = bytes;
  damaged[scores] = 1;  // a start without its error
  EXPECT_FALSE(controller::decode_state(damaged));
}

}  // namespace
}  // namespace gpu_platform::views
