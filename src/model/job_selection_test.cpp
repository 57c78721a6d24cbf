#include "model/job_selection.h"
#include "model/job_spec.h"

#include <gtest/gtest.h>

namespace gpu_platform::model {
namespace {

TEST(Pattern, StarStandsForAnyTextAndQuestionMarkForOneCharacter) {
  EXPECT_TRUE(matches_pattern("train", "train"));
  EXPECT_FALSE(matches_pattern("train", "trains"));
  EXPECT_FALSE(matches_pattern("trains", "train"));
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_TRUE(matches_pattern("train-*", "train-"));
  EXPECT_TRUE(matches_pattern("*-7", "train-17-7"));
  EXPECT_TRUE(matches_pattern("a*b*c", "a-b-b-c"));
  EXPECT_FALSE(matches_pattern("a*b*c", "a-b-b"));
  EXPECT_TRUE(matches_pattern("run-?", "run-\xc3\xa4"));
  EXPECT_FALSE(matches_pattern("run-?", "run-"));
  EXPECT_FALSE(matches_pattern("", "x"));
}

TEST(Pattern, TakesNoTimeOnAHostileOne) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "a*";
  EXPECT_FALSE(matches_pattern(pattern + "b", std::string(255, 'a')));
}

Job job(std::uint64_t id, JobState state) {
  JobSpec spec;
  spec.name = "train-1";
  spec.user = "ann";
  spec.labels = {{"run", "7"}, {"stage", "x"}};
  Job made;
  made.id = JobId(id);
  made.state = state;
  made.spec = std::make_shared<const JobSpec>(spec);
  return made;
}

TEST(Selection, OfNothingGivenTakesEveryJobThatHasNotEnded) {
  EXPECT_TRUE(selects({}, job(3, JobState::kQueued)));
  EXPECT_TRUE(selects({}, job(3, JobState::kRunning)));
  EXPECT_FALSE(selects({}, job(3, JobState::kCompleted)));
}

TEST(Selection, WantsAllThatIsGiven) {
  const Job queued = job(3, JobState::kQueued);
  EXPECT_TRUE(selects({.ids = {JobId(1), JobId(3)}}, queued));
  EXPECT_FALSE(selects({.ids = {JobId(1), JobId(4)}}, queued));
  EXPECT_FALSE(selects({.user = "bob"}, queued));
  EXPECT_TRUE(selects({.user = "ann", .states = {JobState::kHeld, JobState::kQueued}}, queued));
  EXPECT_FALSE(selects({.states = {JobState::kHeld}}, queued));
  EXPECT_TRUE(selects({.name = "train-*", .labels = {{"run", "7"}}}, queued));
  EXPECT_FALSE(selects({.name = "train-*", .labels = {{"run", "8"}}}, queued));
}

}  // namespace
}  // namespace gpu_platform::model
