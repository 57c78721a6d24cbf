#include "bin/isolation_report.h"

#include <gtest/gtest.h>

namespace gpu_platform::bin {
namespace {

execution::NodePart a_part() {
  execution::NodePart part;
  part.detail = "/sys/fs/cgroup/jobs";
  part.can_switch_user = true;
  part.guards = {{node::Guard::kUser, true, {}},
                 {node::Guard::kDevices, false, "no right to load programs"},
                 {node::Guard::kMemory, true, {}}};
  return part;
}

TEST(IsolationReport, HasALineForWhatIsHeldAndOneForEachCauseForWhichSomethingIsNot) {
  const IsolationReport report = isolation_report(a_part());
  EXPECT_EQ(report.held, fmt::format("isolation held=\"{} {}\" detail=\"/sys/fs/cgroup/jobs\"",
                                     node::to_string(node::Guard::kUser),
                                     node::to_string(node::Guard::kMemory)));
  ASSERT_EQ(report.advisory.size(), 1U);
  EXPECT_EQ(report.advisory[0],
            fmt::format("isolation advisory=\"{}\" why=\"no right to load programs\"",
                        node::to_string(node::Guard::kDevices)));
}

TEST(IsolationReport, OneCauseIsOneLine) {
  execution::NodePart part = a_part();
  part.guards.push_back({node::Guard::kFolders, false, "no right to load programs"});
  part.guards.push_back({node::Guard::kCores, false, "no controller"});
  const IsolationReport report = isolation_report(part);
  ASSERT_EQ(report.advisory.size(), 2U);
  EXPECT_EQ(
      report.advisory[0],
      fmt::format("isolation advisory=\"{} {}\" why=\"no right to load programs\"",
                  node::to_string(node::Guard::kDevices), node::to_string(node::Guard::kFolders)));
}

TEST(IsolationReport, WithoutRootThereIsOneLineForAll) {
  execution::NodePart part = a_part();
  part.can_switch_user = false;
  for (node::GuardState& state : part.guards) state = {state.guard, false, "not root"};
  EXPECT_EQ(isolation_report(part).advisory,
            std::vector<std::string>{"not root: jobs are not isolated from each other (3 isolation "
                                     "mechanisms are advisory; 'gpu-platform doctor' lists them)"});
}

TEST(IsolationReport, WithoutGuardsNothingIsHeld) {
  EXPECT_EQ(isolation_report({}).held, "isolation held=\"\" detail=\"\"");
}

TEST(IsolationReport, TheApiGetsEachGuard) {
  const auto guards = isolation_of(a_part());
  ASSERT_EQ(guards.size(), 3U);
  EXPECT_TRUE(guards[0].is_held);
  EXPECT_EQ(guards[1].name, node::to_string(node::Guard::kDevices));
  EXPECT_EQ(guards[1].why_not, "no right to load programs");
}

}  // namespace
}  // namespace gpu_platform::bin
