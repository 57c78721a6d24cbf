#include "monitoring/health_observer.h"

#include <gtest/gtest.h>

#include <memory>

#include "model/job_spec.h"
#include "model/node_lookup.h"

namespace gpu_platform::monitoring {
namespace {

using execution::EvidenceObserved;
using hardware::GpuCondition;
using hardware::GpuEventKind;
using model::EvidenceKind;

constexpr std::int64_t kOneSecond = 1'000'000'000;

class HealthObserverTest : public ::testing::Test, public execution::ObservationSink {
 protected:
  HealthObserverTest() {
    model::Node node;
    node.id = model::NodeId(1);
    node.name = "n1";
    node.gpus.resize(4);
    for (std::size_t i = 0; i < 4; ++i) node.gpus[i].info.uuid = uuids_[i];
    put(node);
  }

  void observe(execution::Observation observation) override {
    told_.push_back(std::get<EvidenceObserved>(std::move(observation)));
  }
  std::vector<EvidenceObserved> told() { return std::exchange(told_, {}); }
  std::vector<EvidenceKind> told_kinds() {
    std::vector<EvidenceKind> kinds;
    for (const EvidenceObserved& seen : told()) kinds.push_back(seen.evidence.kind);
    return kinds;
  }

  model::Node node() { return *snapshot_->nodes.find(1); }
  void put(const model::Node& node) {
    snapshot_->nodes.put(1, node);
    snapshot_->nodes_by_name = model::nodes_by_name(snapshot_->nodes);
  }
  void add_to_gpu_a(EvidenceKind kind, std::uint32_t code) {
    model::Evidence piece;
    piece.kind = kind;
    piece.code = code;
    piece.at = piece.last = now_.at;
    model::Node changed = node();
    std::vector<model::Evidence> kept = *changed.gpus[0].evidence;
    kept.push_back(piece);
    changed.gpus[0].evidence = std::move(kept);
    put(changed);
  }
  // All GPUs are held by job 7.
  void give_to_job(model::JobSpec spec) {
    model::Node changed = node();
    for (model::Gpu& gpu : changed.gpus) {
      gpu.holders = {{{model::JobId(7), 1}, base::kWholeGpu, {}}};
    }
    put(changed);
    model::Job job;
    job.id = model::JobId(7);
    job.spec = std::make_shared<const model::JobSpec>(std::move(spec));
    snapshot_->jobs.put(7, job);
  }

  void pass(std::int64_t seconds) {
    now_.boot_ns += seconds * kOneSecond;
    now_.at = now_.at + base::seconds(seconds);
  }
  node::ProbeReadings readings_of(std::size_t gpus) {
    node::ProbeReadings readings;
    readings.gpus.resize(gpus);
    for (std::uint32_t i = 0; i < gpus; ++i) readings.gpus[i].index = i;
    return readings;
  }
  void read(node::ProbeReadings readings) {
    pass(5);
    readings.began_ns = now_.boot_ns;
    health_.take_readings("n1", uuids_, readings);
  }
  void raise(GpuEventKind kind, std::uint64_t value, const std::string& uuid = "a",
             std::uint32_t count = 1) {
    health_.take_events("n1", {{{0, uuid, kind, 8, value, std::nullopt, count}}, 0, 0});
  }
  hardware::Inventory inventory_of(const std::vector<std::string>& uuids) {
    hardware::Inventory inventory;
    for (const std::string& uuid : uuids) {
      hardware::GpuDescription& gpu = inventory.gpus.emplace_back();
      gpu.index = static_cast<std::uint32_t>(inventory.gpus.size() - 1);
      gpu.uuid = uuid;
      gpu.model = "H100";
      gpu.pcie_width_max = 16;
    }
    return inventory;
  }

  const std::vector<std::string> uuids_{"a", "b", "c", "d"};
  std::shared_ptr<controller::Snapshot> snapshot_ = std::make_shared<controller::Snapshot>();
  std::vector<EvidenceObserved> told_;
  Moment now_{base::Instant(1'790'000'000'000'000'000), 1000 * kOneSecond};
  HealthObserver health_{*this, [this] { return snapshot_; }, {}, [this] { return now_; }};
};

TEST_F(HealthObserverTest, AnXidNamesTheJobThatHeldTheGpu) {
  model::JobSpec spec;
  spec.name = "llama";
  spec.user = "anna";
  spec.command = {"python", "train.py"};
  give_to_job(spec);

  raise(GpuEventKind::kXid, 94);

  const auto all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].node_name, "n1");
  EXPECT_EQ(all[0].gpu_uuid, "a");
  EXPECT_EQ(all[0].evidence.code, 94U);
  EXPECT_EQ(all[0].evidence.job, model::JobId(7));
  EXPECT_EQ(all[0].evidence.user, "anna");
  EXPECT_EQ(all[0].evidence.program, "llama");
  EXPECT_EQ(all[0].evidence.at, now_.at);
}

TEST_F(HealthObserverTest, HeatIsJudgedByTheSlowdownTemperatureOfEachGpu) {
  hardware::Inventory inventory = inventory_of({"a", "b"});
  inventory.gpus[0].slowdown_c = 83;
  health_.take_inventory("n1", inventory);
  node::ProbeReadings readings = readings_of(2);
  readings.gpus[0].temperature_c = readings.gpus[1].temperature_c = 79;

  read(readings);

  auto hot = told();
  std::erase_if(hot, [](const auto& piece) { return piece.evidence.kind != EvidenceKind::kHeat; });
  ASSERT_EQ(hot.size(), 1U);
  EXPECT_EQ(hot[0].gpu_uuid, "a");
  EXPECT_EQ(hot[0].evidence.value, 79);
}

TEST_F(HealthObserverTest, WithoutANameTheFirstWordOfTheCommandIsTheProgram) {
  model::JobSpec spec;
  spec.command = {"python", "train.py"};
  give_to_job(spec);
  raise(GpuEventKind::kXid, 13);
  EXPECT_EQ(told()[0].evidence.program, "python");
}

TEST_F(HealthObserverTest, OfSeveralJobsOnAGpuNoneIsNamed) {
  give_to_job({});
  model::Node changed = node();
  changed.gpus[0].holders.push_back({{model::JobId(8), 1}, base::kWholeGpu, {}});
  put(changed);
  raise(GpuEventKind::kXid, 13);
  EXPECT_FALSE(told()[0].evidence.job.valid());
}

TEST_F(HealthObserverTest, AnEventOfNoGpuIsTheNodes) {
  raise(GpuEventKind::kXid, 79, "");
  const auto all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].gpu_uuid, "");
  EXPECT_EQ(all[0].evidence.code, 79U);
}

TEST_F(HealthObserverTest, AStormIsAHandful) {
  std::uint64_t counted = 0;
  std::size_t pieces = 0;
  for (int i = 0; i < 3000; ++i) {
    raise(GpuEventKind::kXid, 45, "a", 100);
    if (i % 100 == 99) pass(1);
    for (const EvidenceObserved& seen : told()) {
      counted += seen.evidence.count;
      ++pieces;
    }
  }
  pass(10);
  read({});
  for (const EvidenceObserved& seen : told()) {
    counted += seen.evidence.count;
    ++pieces;
  }
  EXPECT_EQ(counted, 300'000U);
  EXPECT_LE(pieces, 5U);
}

TEST_F(HealthObserverTest, TheStormIsForgottenWhenAGpuIsBackInService) {
  raise(GpuEventKind::kXid, 48);
  pass(1);
  raise(GpuEventKind::kXid, 48);
  EXPECT_EQ(told().size(), 1U) << "the second waits";
  for (const EvidenceKind kind : {EvidenceKind::kCleared, EvidenceKind::kReset}) {
    pass(1);
    add_to_gpu_a(kind, 0);
    pass(1);
    raise(GpuEventKind::kXid, 48);
    raise(GpuEventKind::kXid, 48);
    const auto all = told();
    ASSERT_EQ(all.size(), 2U) << to_string(kind);
    EXPECT_LT(all[0].evidence.last, all[1].evidence.at) << "what had waited, then the news";
    EXPECT_EQ(all[1].evidence.at, now_.at);
  }
  pass(1);
  add_to_gpu_a(EvidenceKind::kReset, 1);
  raise(GpuEventKind::kXid, 48);
  EXPECT_TRUE(told().empty()) << "a reset that failed brings nothing back";
}

TEST_F(HealthObserverTest, AnXidOfTheKernelsLogHasItsDetails) {
  give_to_job({});
  hardware::KernelLine line;
  line.code = 74;
  line.pid = 4711;
  line.registers = {0x10000, 0};
  line.text = "NVLink: fatal error detected on link 6(0x10000, 0x0)";
  health_.take_kernel_line("n1", "b", line);
  const auto all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].gpu_uuid, "b");
  EXPECT_EQ(all[0].evidence.kind, EvidenceKind::kXid);
  EXPECT_EQ(all[0].evidence.source, model::EvidenceSource::kKernelLog);
  EXPECT_EQ(all[0].evidence.code, 74U);
  EXPECT_EQ(all[0].evidence.pid, 4711U);
  EXPECT_EQ(all[0].evidence.registers, line.registers);
  EXPECT_EQ(all[0].evidence.text, line.text);
  EXPECT_EQ(all[0].evidence.job, model::JobId(7));
}

TEST_F(HealthObserverTest, AFatalErrorOfASwitchIsTheNodes) {
  hardware::KernelLine line;
  line.kind = hardware::KernelLineKind::kSwitchError;
  line.place = "00000000:06:00";
  line.code = 20034;
  line.text = "Non-fatal, Link 30";
  health_.take_kernel_line("n1", "", line);
  EXPECT_TRUE(told().empty());
  line.is_fatal = true;
  line.text = "Fatal, Link 30 LTSSM Fault Up";
  health_.take_kernel_line("n1", "", line);
  const auto all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].gpu_uuid, "");
  EXPECT_EQ(all[0].evidence.kind, EvidenceKind::kNodeCondition);
  EXPECT_EQ(all[0].evidence.text,
            "SXid 20034: NVSwitch 00000000:06:00: Fatal, Link 30 LTSSM Fault Up");
}

TEST_F(HealthObserverTest, PcieErrorsOfTheKernelsLogAreNotCountedTwice) {
  node::ProbeReadings readings = readings_of(1);
  readings.gpus[0].slow.emplace().pcie_replays = 10;
  read(readings);
  hardware::KernelLine line;
  line.kind = hardware::KernelLineKind::kPcieError;
  line.count = 3;
  line.text = "PCIe Bus Error: severity=Corrected";
  health_.take_kernel_line("n1", "a", line);
  auto all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].evidence.kind, EvidenceKind::kPcieReplays);
  EXPECT_EQ(all[0].evidence.value, 3);
  readings.gpus[0].slow->pcie_replays = 14;
  read(readings);
  all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].evidence.value, 1);
}

TEST_F(HealthObserverTest, LevelsAreToldWhenTheyBeginAndEnd) {
  node::ProbeReadings readings = readings_of(2);
  readings.gpus[1].slow.emplace().remap_pending = true;
  read(readings);
  read(readings);
  auto all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].gpu_uuid, "b");
  EXPECT_EQ(all[0].evidence.kind, EvidenceKind::kRemapPending);
  readings.gpus[1].slow->remap_pending = false;
  read(readings);
  all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(all[0].evidence.is_over);
  EXPECT_FALSE(all[0].evidence.job.valid());
}

TEST_F(HealthObserverTest, ANewDaemonGoesOnWhereTheLastOneEnded) {
  model::Evidence pending;
  pending.kind = EvidenceKind::kRemapPending;
  model::Node changed = node();
  changed.gpus[0].evidence = std::vector{pending};
  put(changed);
  node::ProbeReadings readings = readings_of(1);
  readings.gpus[0].slow.emplace().remap_pending = true;
  read(readings);
  EXPECT_TRUE(told().empty()) << "the core knows";
  readings.gpus[0].slow->remap_pending = false;
  read(readings);
  EXPECT_EQ(told_kinds(), std::vector{EvidenceKind::kRemapPending});
}

TEST_F(HealthObserverTest, AGpuThatIsNotListedAmongOthersIsLost) {
  health_.take_inventory("n1", inventory_of({"a", "b", "c", "d"}));
  EXPECT_TRUE(told().empty());
  health_.take_inventory("n1", {});
  EXPECT_TRUE(told().empty()) << "the driver is gone";
  health_.take_inventory("n1", inventory_of({"a", "c", "d"}));
  auto all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].gpu_uuid, "b");
  EXPECT_EQ(all[0].evidence.kind, EvidenceKind::kLost);
  health_.take_inventory("n1", inventory_of({"a", "c", "d"}));
  EXPECT_TRUE(told().empty());
}

TEST_F(HealthObserverTest, AGpuThatWentWhileTheDaemonWasAwayIsLost) {
  health_.take_inventory("n1", inventory_of({"a", "c", "d"}));
  const auto all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].gpu_uuid, "b");
}

TEST_F(HealthObserverTest, GpusOfAModelTellHowManyLinksEachHas) {
  health_.take_inventory("n1", inventory_of(uuids_));
  node::ProbeReadings readings = readings_of(4);
  for (hardware::GpuReading& gpu : readings.gpus) gpu.slow.emplace().nvlinks_active = 18;
  readings.gpus[2].slow->nvlinks_active = 17;
  read(readings);
  const auto all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].gpu_uuid, "c");
  EXPECT_EQ(all[0].evidence.kind, EvidenceKind::kNvlinkDown);
}

TEST_F(HealthObserverTest, ASlowGpuAmongItsPeersIsTold) {
  health_.take_inventory("n1", inventory_of(uuids_));
  give_to_job({});
  node::ProbeReadings readings = readings_of(4);
  for (hardware::GpuReading& gpu : readings.gpus) {
    gpu.utilization_percent = 100;
    gpu.clock_sm_mhz = 1900;
  }
  readings.gpus[3].clock_sm_mhz = 1100;
  for (int i = 0; i < 40; ++i) read(readings);
  const auto all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].gpu_uuid, "d");
  EXPECT_EQ(all[0].evidence.kind, EvidenceKind::kSlow);
  EXPECT_EQ(all[0].evidence.value, 57);
  EXPECT_EQ(all[0].evidence.job, model::JobId(7));
}

TEST_F(HealthObserverTest, ClocksThatSomebodySetAreNotSlow) {
  health_.take_inventory("n1", inventory_of(uuids_));
  give_to_job({});
  node::ProbeReadings readings = readings_of(4);
  for (hardware::GpuReading& gpu : readings.gpus) {
    gpu.utilization_percent = 100;
    gpu.clock_sm_mhz = 1900;
  }
  readings.gpus[3].clock_sm_mhz = 1100;
  readings.gpus[3].throttle_reasons = model::kThrottleClockSetting;
  for (int i = 0; i < 60; ++i) read(readings);
  EXPECT_TRUE(told().empty());
}

TEST_F(HealthObserverTest, ReadingsWithoutAnyValueTellNothing) {
  for (int i = 0; i < 20; ++i) read(readings_of(4));
  node::ProbeReadings readings = readings_of(1);
  readings.gpus[0].index = 77;
  read(readings);
  EXPECT_TRUE(told().empty());
}

}  // namespace
}  // namespace gpu_platform::monitoring
