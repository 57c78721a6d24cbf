#include "bin/reload_report.h"

#include <gtest/gtest.h>

namespace gpu_platform::bin {
namespace {

using Lines = std::vector<std::string>;

TEST(ReloadReport, TellsWhatIsAppliedNow) {
  const config::Configuration before;
  config::Configuration now = before;
  now.policy.max_queue_size = before.policy.max_queue_size + 1;
  const ReloadReport report = reload_report(before, before, now);
  ASSERT_EQ(report.applied.size(), 1U);
  EXPECT_TRUE(report.applied[0].starts_with("configuration key=")) << report.applied[0];
  EXPECT_TRUE(report.applied[0].ends_with(" applied=now")) << report.applied[0];
  EXPECT_EQ(report.waiting, Lines{});
}

TEST(ReloadReport, TellsAtEachReloadWhatWaitsForTheNextStart) {
  const config::Configuration at_start;
  config::Configuration now = at_start;
  now.max_processes = at_start.max_processes + 100;
  const ReloadReport report = reload_report(at_start, now, now);
  EXPECT_EQ(report.applied, Lines{});
  ASSERT_EQ(report.waiting.size(), 1U);
  EXPECT_TRUE(report.waiting[0].ends_with(" applied=\"at the next start\"")) << report.waiting[0];
}

}  // namespace
}  // namespace gpu_platform::bin
