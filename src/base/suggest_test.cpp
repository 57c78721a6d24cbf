#include "base/suggest.h"

#include <gtest/gtest.h>

namespace gpu_platform::base {
namespace {

constexpr std::string_view kVerbs[] = {"submit", "run", "jobs", "queue", "status", "version"};

TEST(Nearest, FindsTheWordBehindATypingError) {
  EXPECT_EQ(nearest("sumbit", kVerbs), "submit");
  EXPECT_EQ(nearest("stauts", kVerbs), "status");
  EXPECT_EQ(nearest("job", kVerbs), "jobs");
  EXPECT_EQ(nearest("QUEUE", kVerbs), "queue");
}

TEST(Nearest, SaysNothingWhenNothingIsNear) {
  EXPECT_EQ(nearest("kubectl", kVerbs), "");
  EXPECT_EQ(nearest("", kVerbs), "");
  EXPECT_EQ(nearest("x", kVerbs), "");
  EXPECT_EQ(nearest(std::string(5000, 's'), kVerbs), "");
}

TEST(DidYouMean, IsAHalfSentenceOrNothing) {
  EXPECT_EQ(did_you_mean("verison", kVerbs), "; did you mean 'version'?");
  EXPECT_EQ(did_you_mean("kubectl", kVerbs), "");
}

}  // namespace
}  // namespace gpu_platform::base
