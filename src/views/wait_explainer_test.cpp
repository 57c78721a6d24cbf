#include "views/wait_explainer.h"

#include <gtest/gtest.h>

#include <string>

#include "controller/core.h"
#include "controller/test_support.h"

namespace gpu_platform::views {
namespace {

namespace testing = controller::testing;

TEST(WaitExplainer, SaysThatAJobIsHeldForItsLostEnvironment) {
  controller::Core core;
  core.observe(execution::NodeObserved{testing::node_info("n1", 2)}, testing::kNoon);
  ASSERT_TRUE(
      core.command(testing::submission(testing::spec(1)), testing::kNoon, store::Headroom::kAmple));
  core.advance(testing::kNoon);
  execution::Ended ended;
  ended.attempt = testing::attempt(1);
  ended.at = testing::kNoon;
  ended.reason = model::EndReason::kEnvironmentLost;
  core.observe(ended, testing::kNoon);
  core.observe(execution::Cleaned{ended.attempt, {}}, testing::kNoon);
  core.advance(testing::kNoon);
  const auto snapshot = core.snapshot();
  const model::WaitReason reason = WaitExplainer(snapshot).explain(*snapshot->jobs.find(1));
  EXPECT_EQ(reason.code, model::WaitCode::kHeldByPlatform);
  EXPECT_NE(describe(reason).find("environment variables were lost"), std::string::npos);
}

}  // namespace
}  // namespace gpu_platform::views
