#include "shims/steps/multi_prog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::shims {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(MultiProg, GivesEachTaskItsProgramWithItsNumberAndOffset) {
  const auto programs = programs_of_tasks(
      "# who does what\n\n4-5,0 ./first t%t o%o\n1 echo 'a b' \\\n  \"c d\" # rest\n* ./rest %o\n",
      6, {"more"});
  ASSERT_TRUE(programs) << programs.error().message;
  EXPECT_THAT((*programs)[4], ElementsAre("./first", "t4", "o0", "more"));
  EXPECT_THAT((*programs)[0], ElementsAre("./first", "t0", "o2", "more"));
  EXPECT_THAT((*programs)[1], ElementsAre("echo", "a b", "c d", "more"));
  EXPECT_THAT((*programs)[3], ElementsAre("./rest", "1", "more"));
}

TEST(MultiProg, NamesTheLineOfAMistake) {
  const auto mistake = [](const char* file) {
    const auto programs = programs_of_tasks(file, 2, {});
    return programs ? std::string() : programs.error().message;
  };
  EXPECT_THAT(mistake("0 a\n\n0 b\n"), HasSubstr("line 3: task 0 has a program"));
  EXPECT_THAT(mistake("0-1\n"), HasSubstr("line 1: no program"));
  EXPECT_THAT(mistake("1-0 a\n"), HasSubstr("line 1:"));
  EXPECT_THAT(mistake("x a\n"), HasSubstr("line 1:"));
  EXPECT_THAT(mistake("* 'a\n"), HasSubstr("line 1: a quote"));
  EXPECT_THAT(mistake("0 a\n"), HasSubstr("task 1"));
}

TEST(MultiProg, TasksThatTheStepDoesNotHaveAreNoMistake) {
  EXPECT_TRUE(programs_of_tasks("0-1000000 a\n", 2, {}));
}

}  // namespace
}  // namespace gpu_platform::shims
