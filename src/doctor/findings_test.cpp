#include "doctor/findings.h"

#include <gtest/gtest.h>

namespace gpu_platform::doctor {
namespace {

using hardware::ProblemKind;
using node::Guard;

TEST(Doctor, SaysOfEveryGuardWhetherItIsHeldAndWhatToDoElse) {
  std::vector<node::GuardState> guards;
  for (std::size_t i = 0; i < node::kGuards; ++i) {
    guards.push_back({static_cast<Guard>(i), i % 2 == 0, "not here"});
  }
  const auto findings = judge_isolation(guards);
  ASSERT_EQ(findings.size(), node::kGuards);
  for (std::size_t i = 0; i < findings.size(); ++i) {
    EXPECT_EQ(findings[i].verdict, i % 2 == 0 ? Verdict::kGood : Verdict::kWarning);
    EXPECT_EQ(findings[i].advice.empty(), i % 2 == 0) << findings[i].check;
  }
  EXPECT_EQ(findings[1].text, "advisory: not here");
  EXPECT_EQ(overall(findings), Verdict::kWarning);
}

TEST(Doctor, CallsAHostWithoutALauncherBad) {
  EXPECT_EQ(overall(judge_isolation({})), Verdict::kBad);
}

TEST(Doctor, SaysHowJobsCanShareAGpu) {
  const auto guards = [](bool is_held) {
    return std::vector<node::GuardState>{{Guard::kProcessTree, is_held, "no root"},
                                         {Guard::kUser, is_held, "no root"}};
  };
  const auto both = judge_sharing(guards(true), "/usr/bin/nvidia-cuda-mps-control");
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].check, "sharing.time-slice");
  EXPECT_EQ(both[1].check, "sharing.mps");
  EXPECT_EQ(both[1].text, "/usr/bin/nvidia-cuda-mps-control can start MPS servers");
  EXPECT_EQ(overall(both), Verdict::kGood);
  const auto turns = judge_sharing(guards(true), "");
  ASSERT_EQ(turns.size(), 2U);
  EXPECT_EQ(turns[0].verdict, Verdict::kGood);
  EXPECT_EQ(turns[1].verdict, Verdict::kWarning);
  EXPECT_FALSE(turns[1].advice.empty());
  const auto none = judge_sharing(guards(false), "/usr/bin/nvidia-cuda-mps-control");
  ASSERT_EQ(none.size(), 1U);
  EXPECT_EQ(none[0].verdict, Verdict::kWarning);
  EXPECT_FALSE(none[0].advice.empty());
}

TEST(Doctor, KnowsAnAbsentDriverFromABrokenOne) {
  hardware::Inventory inventory;
  inventory.problem = {ProblemKind::kNoLibrary, "there is no libnvidia-ml.so.1"};
  EXPECT_EQ(overall(judge_gpus(inventory)), Verdict::kWarning);
  for (const ProblemKind kind :
       {ProblemKind::kNotNvml, ProblemKind::kNoDriver, ProblemKind::kDriverMismatch,
        ProblemKind::kNoPermission, ProblemKind::kNoGpu, ProblemKind::kOther}) {
    inventory.problem->kind = kind;
    EXPECT_EQ(overall(judge_gpus(inventory)), Verdict::kBad);
    EXPECT_FALSE(judge_gpus(inventory).front().advice.empty());
  }
}

TEST(Doctor, DoesNotMissDcgm) {
  EXPECT_EQ(judge_dcgm({}),
            (Finding{"dcgm", Verdict::kGood, "DCGM is not installed; it is not needed", ""}));
  EXPECT_EQ(judge_dcgm({"libdcgm.so.4", ""}),
            (Finding{"dcgm", Verdict::kGood, "libdcgm.so.4 can be used", ""}));
  const Finding broken = judge_dcgm({"", "libdcgm.so.4 is not DCGM: it has no dcgmInit"});
  EXPECT_EQ(broken.verdict, Verdict::kWarning);
  EXPECT_EQ(broken.text, "libdcgm.so.4 is not DCGM: it has no dcgmInit");
  EXPECT_FALSE(broken.advice.empty());
}

TEST(Doctor, LooksAtEachGpu) {
  hardware::Inventory inventory;
  inventory.driver.driver_version = "550.54";
  inventory.gpus.resize(3);
  inventory.gpus[0].model = "NVIDIA H100";
  inventory.gpus[0].persistence_enabled = true;
  inventory.gpus[1].persistence_enabled = false;
  inventory.gpus[2].problem = "GPU is lost";
  const auto findings = judge_gpus(inventory);
  ASSERT_EQ(findings.size(), 4U);
  EXPECT_EQ(findings[0].text, "version 550.54, 3 GPUs");
  EXPECT_EQ(findings[1], (Finding{"gpu.0", Verdict::kGood, "GPU 0 (NVIDIA H100)", ""}));
  EXPECT_EQ(findings[2].verdict, Verdict::kWarning);
  EXPECT_EQ(findings[3].verdict, Verdict::kBad);
}

TEST(Doctor, WantsADiskThatKeepsItsWord) {
  const DiskFacts good{"/var/lib", "ext4", true, base::kGiB * 10};
  EXPECT_EQ(judge_disk(good).verdict, Verdict::kGood);
  DiskFacts disk = good;
  disk.file_system = "tmpfs";
  EXPECT_EQ(judge_disk(disk).verdict, Verdict::kWarning);
  disk = good;
  disk.available = base::kMiB * 100;
  EXPECT_EQ(judge_disk(disk).verdict, Verdict::kWarning);
  disk = good;
  disk.is_writable = false;
  EXPECT_EQ(judge_disk(disk).verdict, Verdict::kBad);
}

TEST(Doctor, GivesEachAdviceOnce) {
  const std::vector<Finding> findings = {{"isolation.memory", Verdict::kWarning, "x", "delegate"},
                                         {"driver", Verdict::kGood, "y", ""},
                                         {"disk", Verdict::kWarning, "z", "make room"},
                                         {"isolation.cpu", Verdict::kWarning, "x", "delegate"}};
  EXPECT_EQ(advice_of(findings),
            (std::vector<Advice>{{"isolation.memory, isolation.cpu", "delegate"},
                                 {"disk", "make room"}}));
}

TEST(Doctor, LooksAtLimitsClockAndService) {
  EXPECT_EQ(overall(judge_kernel({65536, true})), Verdict::kGood);
  EXPECT_EQ(overall(judge_kernel({1024, true})), Verdict::kWarning);
  EXPECT_EQ(overall(judge_kernel({65536, false})), Verdict::kWarning);
  EXPECT_EQ(judge_service({true, true, true, "unix:/run/s"}).verdict, Verdict::kGood);
  EXPECT_NE(judge_service({true, true, false, ""}).advice.find("systemctl"), std::string::npos);
  EXPECT_NE(judge_service({true, false, false, ""}).advice.find("deployment"), std::string::npos);
}

TEST(Doctor, TheServiceIsTheDaemonThatTheCallerNames) {
  EXPECT_EQ(judge_service({true, true, true, "unix:/run/s"}).text,
            "a daemon answers at unix:/run/s");
  const Finding elsewhere = judge_service({true, true, false, "https://gpus:8443", false});
  EXPECT_EQ(elsewhere.text, "no daemon answers at https://gpus:8443");
  EXPECT_NE(elsewhere.advice.find("GPU_PLATFORM_SERVER"), std::string::npos);
}

}  // namespace
}  // namespace gpu_platform::doctor
