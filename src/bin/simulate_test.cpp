#include <gtest/gtest.h>

#include "bin/verbs.h"
#include "bin/verbs_fixture.h"
#include "client/exit_code.h"

namespace gpu_platform::bin {
namespace {

TEST(Simulate, ASmallRunReportsItsWorlds) {
  const VerbRun text = run_verb(simulate_main, {"faults", "--seeds", "1", "--first-seed", "17"});
  EXPECT_EQ(text.code, client::kOk) << text.out << text.err;
  EXPECT_NE(text.out, "");
  const VerbRun json = run_verb(simulate_main, {"faults", "--seeds", "1", "--json"});
  EXPECT_EQ(json.code, client::kOk) << json.out << json.err;
  EXPECT_TRUE(json.out.starts_with("{")) << json.out;
}

TEST(Simulate, AMistakeInAnOptionIsTold) {
  const VerbRun run = run_verb(simulate_main, {"faults", "--seeds", "none"});
  EXPECT_EQ(run.code, client::kUsage);
  EXPECT_NE(run.err.find("--seeds: "), std::string::npos) << run.err;
  EXPECT_EQ(run.out, "");
}

TEST(Simulate, OnlyFaultsAreKnown) {
  EXPECT_EQ(run_verb(simulate_main, {}).code, client::kUsage);
  const VerbRun run = run_verb(simulate_main, {"weather"});
  EXPECT_EQ(run.code, client::kUsage);
  EXPECT_NE(run.err.find("simulate \"weather\": only faults is known"), std::string::npos);
}

TEST(Simulate, ItsHelpNamesFaults) {
  const VerbRun run = run_verb(simulate_main, {"--help"});
  EXPECT_EQ(run.code, client::kOk);
  EXPECT_NE(run.out.find("Usage: gpu-platform simulate faults"), std::string::npos);
}

}  // namespace
}  // namespace gpu_platform::bin
