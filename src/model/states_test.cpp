#include "model/states.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>

#include "model/state_diagrams.h"

namespace gpu_platform::model {
namespace {

// Every pair of state and trigger, and what must come of it. What is not here must be refused: the
// tables are written down a second time on purpose, by hand, as the promise that they are held to.

using J = JobState;
using JT = JobTrigger;
const std::set<std::tuple<J, JT, J>> kJobPromise = {
    {J::kHeld, JT::kRelease, J::kPending},
    {J::kHeld, JT::kCancel, J::kCancelled},
    {J::kPending, JT::kBecameEligible, J::kQueued},
    {J::kQueued, JT::kPostpone, J::kPending},
    {J::kPending, JT::kHold, J::kHeld},
    {J::kPending, JT::kCancel, J::kCancelled},
    {J::kQueued, JT::kHold, J::kHeld},
    {J::kQueued, JT::kStartRequested, J::kStarting},
    {J::kQueued, JT::kCancel, J::kCancelled},
    {J::kStarting, JT::kStarted, J::kRunning},
    {J::kStarting, JT::kStopRequested, J::kStopping},
    {J::kStarting, JT::kRequeue, J::kPending},
    {J::kStarting, JT::kFail, J::kFailed},
    {J::kStarting, JT::kCancel, J::kCancelled},
    {J::kRunning, JT::kStopRequested, J::kStopping},
    {J::kRunning, JT::kSuspend, J::kSuspended},
    {J::kRunning, JT::kPreempt, J::kPreempted},
    {J::kStarting, JT::kPreempt, J::kPreempted},
    {J::kRunning, JT::kRequeue, J::kPending},
    {J::kRunning, JT::kComplete, J::kCompleted},
    {J::kRunning, JT::kFail, J::kFailed},
    {J::kRunning, JT::kCancel, J::kCancelled},
    {J::kRunning, JT::kTimeOut, J::kTimedOut},
    {J::kStopping, JT::kStarted, J::kStopping},
    {J::kStopping, JT::kStopRequested, J::kStopping},
    {J::kStopping, JT::kPreempt, J::kPreempted},
    {J::kStopping, JT::kRequeue, J::kPending},
    {J::kStopping, JT::kComplete, J::kCompleted},
    {J::kStopping, JT::kFail, J::kFailed},
    {J::kStopping, JT::kCancel, J::kCancelled},
    {J::kStopping, JT::kTimeOut, J::kTimedOut},
    {J::kSuspended, JT::kStopRequested, J::kStopping},
    {J::kSuspended, JT::kResume, J::kRunning},
    {J::kSuspended, JT::kRequeue, J::kPending},
    {J::kSuspended, JT::kFail, J::kFailed},
    {J::kPreempted, JT::kBecameEligible, J::kQueued},
    {J::kPreempted, JT::kCancel, J::kCancelled},
    {J::kPreempted, JT::kHold, J::kHeld},
};

using A = AttemptState;
using AT = AttemptTrigger;
const std::set<std::tuple<A, AT, A>> kAttemptPromise = {
    {A::kRequested, AT::kStarted, A::kRunning},
    {A::kRequested, AT::kStopRequested, A::kStopping},
    {A::kRequested, AT::kEnded, A::kCleaning},
    {A::kRunning, AT::kStopRequested, A::kStopping},
    {A::kRunning, AT::kEnded, A::kCleaning},
    {A::kStopping, AT::kStarted, A::kStopping},
    {A::kStopping, AT::kStopRequested, A::kStopping},
    {A::kStopping, AT::kEnded, A::kCleaning},
    {A::kCleaning, AT::kReleased, A::kReleased},
};

template <class State, class Trigger>
struct Size {
  std::size_t states;
  std::size_t triggers;
};

// Walks every pair: the promise has at most one row for it, and next() says exactly that.
template <class State, class Trigger>
void expect_promise(const std::set<std::tuple<State, Trigger, State>>& promise,
                    Size<State, Trigger> size) {
  for (std::size_t s = 0; s < size.states; ++s) {
    for (std::size_t t = 0; t < size.triggers; ++t) {
      const auto from = static_cast<State>(s);
      const auto trigger = static_cast<Trigger>(t);
      std::optional<State> expected;
      for (const auto& [row_from, row_trigger, to] : promise) {
        if (row_from == from && row_trigger == trigger) expected = to;
      }
      EXPECT_EQ(next(from, trigger), expected) << to_string(from) << " " << to_string(trigger);
    }
  }
}

template <class State, class Trigger>
void expect_one_row_per_pair(std::span<const Transition<State, Trigger>> table) {
  std::set<std::pair<State, Trigger>> seen;
  for (const auto& row : table) {
    EXPECT_TRUE(seen.emplace(row.from, row.trigger).second)
        << to_string(row.from) << " " << to_string(row.trigger);
    EXPECT_FALSE(row.why.empty()) << to_string(row.from) << " " << to_string(row.trigger);
  }
}

TEST(JobStates, EveryPairIsOneRowOrRefused) {
  expect_promise<J, JT>(kJobPromise, {kJobStates, kJobTriggers});
  expect_one_row_per_pair(job_transitions());
}

TEST(AttemptStates, EveryPairIsOneRowOrRefused) {
  expect_promise<A, AT>(kAttemptPromise, {kAttemptStates, kAttemptTriggers});
  expect_one_row_per_pair(attempt_transitions());
}

TEST(JobStates, EndedStatesHaveNoWayOut) {
  for (const auto& row : job_transitions()) EXPECT_FALSE(is_ended(row.from)) << row.why;
}

TEST(JobStates, EveryStateCanBeReachedFromSubmission) {
  std::set<JobState> reached = {JobState::kQueued};
  for (std::size_t before = 0; before != reached.size();) {
    before = reached.size();
    for (const auto& row : job_transitions()) {
      if (reached.contains(row.from)) reached.insert(row.to);
    }
  }
  EXPECT_EQ(reached.size(), kJobStates);
}

TEST(JobStates, NamesAreReadBack) {
  for (std::size_t i = 0; i < kJobStates; ++i) {
    const auto state = static_cast<JobState>(i);
    EXPECT_EQ(parse_job_state(to_string(state)), state);
  }
  EXPECT_EQ(parse_job_state("queued"), std::nullopt);
  EXPECT_EQ(parse_job_state(""), std::nullopt);
}

TEST(JobStates, SetsDoNotOverlap) {
  for (std::size_t i = 0; i < kJobStates; ++i) {
    const auto state = static_cast<JobState>(i);
    EXPECT_LE(int{is_ended(state)} + int{is_active(state)} + int{is_waiting(state)}, 1)
        << to_string(state);
  }
}

TEST(AttemptStates, WhatMayHaveProcessesHoldsResources) {
  for (std::size_t i = 0; i < kAttemptStates; ++i) {
    const auto state = static_cast<AttemptState>(i);
    EXPECT_TRUE(holds_resources(state) || !may_have_processes(state)) << to_string(state);
  }
}

TEST(StateDiagrams, PageIsWhatTheTablesSay) {
  std::ifstream page(GP_SOURCE_DIRECTORY "/docs/states.md");
  std::stringstream text;
  text << page.rdbuf();
  EXPECT_EQ(text.str(), state_diagrams())
      << "docs/states.md differs from the tables in src/model/states.cpp; the page must be what "
         "model::state_diagrams() returns";
}

TEST(StateDiagrams, NamesEveryTransition) {
  const std::string page = state_diagrams();
  for (const auto& row : job_transitions()) {
    EXPECT_NE(page.find(std::string(row.why)), std::string::npos) << row.why;
  }
}

}  // namespace
}  // namespace gpu_platform::model
