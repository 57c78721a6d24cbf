#include "health/condition_rules.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "health/case_book.h"
#include "health/gpu_case.h"
#include "health/rule_table.h"

namespace gpu_platform::health {
namespace {

using model::Evidence;

constexpr base::Instant kBegin(1'790'000'000'000'000'000);

struct Published {
  std::string text;
  std::string rule;
  Action action = Action::kCount;
  FaultClass fault = FaultClass::kHardware;
};

// As an API server shows them: "TYPE: REASON".
const std::vector<Published>& published() {
  using enum Action;
  using Fault = FaultClass;
  static const std::vector<Published> all = {
      {"DeviceHealth: the GPU is unhealthy", "condition-devicehealth", kDrain},
      {"GPUMissing: GPUMissing", "condition-gpumissing", kDrain},
      {"NVLinkStatusInactive: NVLinkStatusInactive", "condition-nvlinkstatusinactive", kDrain},
      {"XIDErrors: XIDErrorsPresent", "condition-xiderrors", kDegrade, Fault::kUnknown},
      {"IBLinkFlapping: IBLinkFlapping", "condition-iblinkflapping", kDegrade},
      {"GPUClockThrottling: HWSlowdown", "condition-gpuclockthrottling", kAvoid},
      {"UnhealthyNvidiaDevicePlugin: PluginDown", "condition-unhealthynvidiadeviceplugin", kAvoid,
       Fault::kDriver},
      {"UnhealthyNvidiaDCGMServices: DCGMDown", "condition-unhealthynvidiadcgmservices", kCount,
       Fault::kSymptom},
      {"VMEventScheduled: VMEventScheduled", "condition-vmeventscheduled", kCount, Fault::kSymptom},
      {"AcceleratedHardwareReady: NvidiaDoubleBitError", "condition-acceleratedhardwareready",
       kDrain},
      {"AcceleratedHardwareReady: DCGMError", "condition-acceleratedhardwareready-dcgmerror",
       kCount, Fault::kSymptom},
      {"KernelReady: ForkFailedOutOfPIDs", "condition-kernelready", kAvoid, Fault::kUnknown},
      {"NetworkingReady: IPAMDNotReady", "condition-networkingready", kAvoid, Fault::kUnknown},
      {"StorageReady: IODelays", "condition-storageready", kAvoid, Fault::kUnknown},
      {"ContainerRuntimeReady: ContainerRuntimeFailed", "condition-containerruntimeready", kAvoid,
       Fault::kUnknown},
      {"GpuMemWatch: GpuMemWatchIsNotHealthy", "condition-gpumemwatch", kDrain},
      {"GpuInforomWatch: GpuInforomWatchIsNotHealthy", "condition-gpuinforomwatch", kDrain},
      {"GpuSmWatch: GpuSmWatchIsNotHealthy", "condition-gpusmwatch", kDrain},
      {"GpuNvlinkWatch: GpuNvlinkWatchIsNotHealthy", "condition-gpunvlinkwatch", kDrain},
      {"GpuMcuWatch: GpuMcuWatchIsNotHealthy", "condition-gpumcuwatch", kDrain},
      {"GpuPmuWatch: GpuPmuWatchIsNotHealthy", "condition-gpupmuwatch", kDrain},
      {"GpuDriverWatch: GpuDriverWatchIsNotHealthy", "condition-gpudriverwatch", kDrain,
       Fault::kDriver},
      {"GpuPcieWatch: GpuPcieWatchIsNotHealthy", "condition-gpupciewatch", kDegrade},
      {"GpuPowerWatch: GpuPowerWatchIsNotHealthy", "condition-gpupowerwatch", kDegrade},
      {"GpuThermalWatch: GpuThermalWatchIsNotHealthy", "condition-gputhermalwatch", kAvoid},
      {"GpuCpusetWatch: GpuCpusetWatchIsNotHealthy", "condition-gpucpusetwatch", kCount,
       Fault::kSymptom},
      {"GpuDcgmConnectivityFailure: DcgmDown", "condition-gpudcgmconnectivityfailure", kCount,
       Fault::kSymptom},
      {"SysLogsXIDError: SysLogsXIDErrorIsNotHealthy", "condition-syslogsxiderror", kDrain},
      {"SysLogsSXIDError: SysLogsSXIDErrorIsNotHealthy", "condition-syslogssxiderror", kDrain},
      {"SysLogsGPUFallenOff: SysLogsGPUFallenOffIsNotHealthy", "condition-syslogsgpufallenoff",
       kDrain},
      {"GpuCount: GpuCountHasIssues", "condition-gpucount", kDrain},
      {"GpuEcc: GpuEccHasIssues", "condition-gpuecc", kDrain},
      {"GpuRowRemap: GpuRowRemapHasIssues", "condition-gpurowremap", kDrain},
      {"GpuBus: GpuBusHasIssues", "condition-gpubus", kDrain},
      {"GpuPcie: GpuPcieHasIssues", "condition-gpupcie", kDegrade},
      {"GpuFabricManager: HasIssues", "condition-gpufabricmanager", kDrain, Fault::kDriver},
      {"GpuFabricMgr: HasIssues", "condition-gpufabricmgr", kDrain, Fault::kDriver},
      {"GpuImex: HasIssues", "condition-gpuimex", kDrain, Fault::kDriver},
      {"GpuXid: GpuXidHasIssues", "condition-gpuxid", kDegrade, Fault::kUnknown},
      {"NvlinkSpeed: HasIssues", "condition-nvlinkspeed", kDegrade},
      {"DcgmiHealth: HasIssues", "condition-dcgmihealth", kDegrade, Fault::kUnknown},
      {"RdmaLink: HasIssues", "condition-rdmalink", kDegrade},
      {"RdmaLinkFlapping: HasIssues", "condition-rdmalinkflapping", kDegrade},
      {"RdmaWpaAuth: HasIssues", "condition-rdmawpaauth", kDegrade, Fault::kUnknown},
      {"RdmaRttcc: HasIssues", "condition-rdmarttcc", kCount, Fault::kSymptom},
      {"NvidiaDeviceLost: NvidiaDeviceLost", "condition-nvidiadevicelost", kDrain},
      {"NvidiaRemappingRowsFailed: Failed", "condition-nvidiaremappingrowsfailed", kDrain},
      {"NvidiaRemappingRowsRequireReset: Pending", "condition-nvidiaremappingrowsrequirereset",
       kDrain},
      {"NvidiaPendingRetiredPages: Pending", "condition-nvidiapendingretiredpages", kDrain},
      {"NvidiaInfoRomCorrupted: Corrupted", "condition-nvidiainforomcorrupted", kDrain},
      {"NvidiaPowerCableErr: Cable", "condition-nvidiapowercableerr", kDrain},
      {"NebiusGPUError: GPUHealthCheckFailedMK8S", "condition-nebiusgpuerror", kDrain},
      {"CperHardwareErrorFatal: CperHardwareErrorFatal", "condition-cperhardwareerrorfatal",
       kDrain},
      {"SomethingNew: Odd", "condition-unknown", kCount, Fault::kUnknown},
  };
  return all;
}

class Conditions : public ::testing::Test {
 protected:
  Conditions() {
    for (const char* gpu : {"n:0", "n:1"}) book_.add_gpu({"n", gpu, "H100"});
  }
  ConditionMeaning meaning(std::string_view text) const {
    return meaning_of_condition(text, rules_, "H100");
  }
  static Evidence piece(std::string text, base::Duration after, bool is_over = false) {
    Evidence made;
    made.kind = model::EvidenceKind::kNodeCondition;
    made.source = model::EvidenceSource::kCluster;
    made.at = made.last = kBegin + after;
    made.is_over = is_over;
    made.text = std::move(text);
    return made;
  }
  GpuVerdict judged(std::string_view gpu = "n:0") const {
    return judge_gpu(book_, {"n", gpu, "H100"}, rules_, kBegin + base::hours(1));
  }

  Rules rules_ = *Rules::make(Profile::kNvidia);
  CaseBook book_;
};

TEST_F(Conditions, ThatHealthToolsPublishHaveARowEach) {
  std::set<std::string_view> seen;
  for (const Published& each : published()) {
    const ConditionMeaning found = meaning(each.text);
    EXPECT_EQ(found.rule->name, each.rule) << each.text;
    EXPECT_EQ(found.action, each.action) << each.text;
    EXPECT_EQ(found.rule->fault, each.fault) << each.text;
    seen.insert(found.rule->name);
  }
  for (const Rule& row : published_rows()) {
    EXPECT_TRUE(seen.contains(row.name)) << row.name << " has no case in this test";
    EXPECT_LE(row.action, Action::kDrain) << row.name << ": nothing tells which GPU it is";
  }
}

TEST_F(Conditions, ThatNameAnXidGoByItsRuleAndAskForNoReset) {
  for (const char* text : {"NvidiaXID79Error: Lost", "SysLogsXIDError: XID79",
                           "AcceleratedHardwareReady: NvidiaXID79Error",
                           "taint gpu.nvidia.com/xid=79:NoExecute", "Errors: Xid: 79"}) {
    EXPECT_EQ(meaning(text).rule->name, "xid-79") << text;
    EXPECT_EQ(meaning(text).action, Action::kDrain) << text;
  }
  // A program's error drains no node, although a tool calls it a condition.
  EXPECT_EQ(meaning("NvidiaXID69Error: Engine").action, Action::kCount);
  EXPECT_EQ(meaning("taint gpu.nvidia.com/xid=31:NoSchedule").action, Action::kCount);
  EXPECT_EQ(meaning("Errors: SXid 79").rule->name, "node-fault") << "one of an NVSwitch";
}

TEST_F(Conditions, ThatNoListKnowsAreCountedUnlessTheirWordsSpeakOfHardware) {
  EXPECT_EQ(meaning("FrequentKubeletRestart: Often").action, Action::kCount);
  EXPECT_EQ(meaning("NVSwitchFault: SXid 20034").rule->name, "node-fault");
  EXPECT_EQ(meaning("NVSwitchFault: SXid 20034").action, Action::kDrain);
  book_.add_to_node("n", piece("SomethingNew: Odd", {}));
  const GpuVerdict verdict = judged();
  EXPECT_EQ(verdict.action, Action::kCount);
  EXPECT_EQ(verdict.fault, FaultClass::kUnknown);
  EXPECT_NE(verdict.text.find("its node: SomethingNew: Odd"), std::string::npos) << verdict.text;
}

TEST_F(Conditions, OfANodeHitAllItsGpusUntilTheyEnd) {
  book_.add_to_node("n", piece("GPUMissing: Seven", {}));
  for (const char* gpu : {"n:0", "n:1"}) {
    EXPECT_EQ(judged(gpu).action, Action::kDrain);
    EXPECT_EQ(judged(gpu).rule, "condition-gpumissing");
    EXPECT_NE(judged(gpu).next.find("when the condition ends"), std::string::npos);
  }
  book_.add_to_node("n", piece("GPUMissing: Seven", base::minutes(5), true));
  EXPECT_EQ(judged().action, Action::kNone);
}

TEST_F(Conditions, OfOneGpuSayNothingOfTheOthers) {
  book_.add({"n", "n:0", "H100"}, piece("DeviceHealth: the GPU is unhealthy", {}));
  // The end of another GPU's is not the end of this one's.
  book_.add({"n", "n:1", "H100"}, piece("DeviceHealth: the GPU is unhealthy", {}));
  book_.add({"n", "n:1", "H100"},
            piece("DeviceHealth: the GPU is unhealthy", base::minutes(2), true));
  EXPECT_EQ(judged("n:0").action, Action::kDrain);
  EXPECT_EQ(judged("n:1").action, Action::kNone);
}

TEST_F(Conditions, OfASiteAreChangedByTheirRules) {
  rules_ =
      *Rules::make(Profile::kNvidia,
                   std::vector<RuleOverride>{{"condition-gpumissing", "", Action::kCount, {}}});
  book_.add_to_node("n", piece("GPUMissing: Seven", {}));
  EXPECT_EQ(judged().action, Action::kCount);
}

constexpr GpuKey kH100{.node = {}, .uuid = {}, .type = "H100"};

TEST_F(Conditions, ExplainTheFailureOfAJobOnlyIfTheyAreOfHardware) {
  EXPECT_TRUE(is_hard_condition("NVLinkStatusInactive: Down", rules_, kH100));
  EXPECT_TRUE(is_hard_condition("NVSwitchFault: SXid 20034", rules_, kH100));
  for (const char* text : {"XIDErrors: XIDErrorsPresent", "SomethingNew: Odd",
                           "NvidiaXID69Error: Engine", "KernelReady: Fork"}) {
    EXPECT_FALSE(is_hard_condition(text, rules_, kH100)) << text;
  }
}

}  // namespace
}  // namespace gpu_platform::health
