#include "monitoring/node_observer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/node_lookup.h"

namespace gpu_platform::monitoring {
namespace {

using execution::EvidenceObserved;
using hardware::GpuCondition;
using hardware::GpuEventKind;
using model::EvidenceKind;
using model::EvidenceSource;

// A node with the GPUs "a" to "d", in the slots 10 to 40.
class NodeObserverTest : public ::testing::Test, public execution::ObservationSink {
 protected:
  NodeObserverTest() {
    model::Node node;
    node.id = model::NodeId(1);
    node.name = "n1";
    for (const char* uuid : {"a", "b", "c", "d"}) {
      model::Gpu gpu;
      gpu.info.uuid = uuid;
      gpu.is_reported = true;
      node.gpus.push_back(gpu);
    }
    snapshot_->nodes.put(1, node);
    snapshot_->nodes_by_name = model::nodes_by_name(snapshot_->nodes);
    list({"a", "b", "c", "d"});
    told();
  }

  // The gate may observe on its own thread.
  void observe(execution::Observation observation) override {
    const std::lock_guard lock(mutex_);
    if (auto* seen = std::get_if<EvidenceObserved>(&observation)) told_.push_back(*seen);
    if (auto* node = std::get_if<execution::NodeObserved>(&observation)) node_ = node->info;
  }
  std::vector<EvidenceObserved> told() {
    const std::lock_guard lock(mutex_);
    return std::exchange(told_, {});
  }

  static hardware::Inventory inventory_of(const std::vector<std::string>& uuids) {
    hardware::Inventory inventory;
    inventory.host.name = "n1";
    inventory.host.boot_id = "boot";
    inventory.host.cpus = {0, 1};
    inventory.host.memory = base::kGiB;
    for (const std::string& uuid : uuids) {
      hardware::GpuDescription& gpu = inventory.gpus.emplace_back();
      gpu.index = static_cast<std::uint32_t>(inventory.gpus.size() - 1);
      gpu.minor = gpu.index;
      gpu.uuid = uuid;
      gpu.model = "H100";
      gpu.memory = base::kGiB;
      gpu.pci_address = fmt::format("00000000:{}0:00.0", uuid.front() - 'a' + 1);
    }
    return inventory;
  }
  // The driver lists these, in this order.
  void list(const std::vector<std::string>& uuids) { report(inventory_of(uuids)); }
  // The node as it is described to the core if the site says this.
  model::NodeInfo described_with(NodeObserver::Site site) {
    NodeObserver observer(*this, monitor_, health_, mps_faults_, memory_, gate_, log_,
                          std::move(site));
    observer.on_report({"n1", false, inventory_of({"a"})});
    const std::lock_guard lock(mutex_);
    return node_;
  }
  void read(std::vector<hardware::GpuReading> gpus) {
    node::ProbeReadings readings;
    readings.gpus = std::move(gpus);
    readings.began_ns = ++read_ns_;
    report(std::move(readings));
  }
  void raise(std::uint64_t xid, const std::string& uuid) {
    report(node::ProbeEvents{{{0, uuid, GpuEventKind::kXid, 8, xid, std::nullopt, 1}}, 0, 0});
  }
  void log(const std::string& text) {
    auto line = hardware::read_kernel_line(text);
    ASSERT_TRUE(line) << text;
    report(node::ProbeKernelLog{{*line}, 0, {}});
  }
  template <class Content>
  void report(Content content) {
    observer_.on_report({"n1", false, std::move(content)});
  }

  std::shared_ptr<controller::Snapshot> snapshot_ = std::make_shared<controller::Snapshot>();
  std::mutex mutex_;
  std::vector<EvidenceObserved> told_;
  model::NodeInfo node_;  // as it was described last
  std::int64_t read_ns_ = 0;
  host::UserDirectory users_;
  logging::Log log_;
  const SnapshotNow now_ = [this] { return snapshot_; };
  GpuMonitor monitor_{*this, now_, "", users_};
  HealthObserver health_{*this, now_};
  AttemptGate gate_{*this, now_, [](const auto&, const auto&) {}, [](const auto&) {}};
  MemoryWatchdog memory_{*this, now_, [](const auto&, const auto&) {}, [](const auto&) {},
                         [](const auto&) {}};
  std::vector<std::uint32_t> asked_owners_;  // pids
  MpsFaultObserver mps_faults_{now_,
                               [this](const std::string&, std::uint32_t pid) {
                                 asked_owners_.push_back(pid);
                                 return std::nullopt;
                               },
                               [](std::uint32_t xid) { return xid == 31; }};
  NodeObserver observer_{*this, monitor_, health_, mps_faults_, memory_, gate_, log_, {}};
};

TEST_F(NodeObserverTest, AnXidOfDriverAndKernelIsOnePiece) {
  log("NVRM: Xid (PCI:0000:20:00): 79, pid=7, name=a, GPU has fallen off the bus.");
  raise(79, "b");
  log("NVRM: GPU 0000:20:00.0: GPU has fallen off the bus.");
  auto all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].gpu_uuid, "b");
  EXPECT_EQ(all[0].evidence.code, 79U);
  EXPECT_EQ(all[0].evidence.pid, 7U);
  EXPECT_EQ(all[0].evidence.source, EvidenceSource::kKernelLog);
  EXPECT_EQ(monitor_.latest("b")->xid_counts.at(79), 1U);

  raise(48, "c");
  log("NVRM: Xid (PCI:0000:30:00): 48, pid=7, name=a, DBE");
  all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].evidence.source, EvidenceSource::kDriver);
}

TEST_F(NodeObserverTest, AnXidThatOnlyTheKernelTellsIsSeen) {
  log("NVRM: Xid (PCI:0000:10:00): 63, pid=7, name=a, Row Remapper: New row marked");
  const auto all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].gpu_uuid, "a");
  EXPECT_EQ(all[0].evidence.code, 63U);
  EXPECT_EQ(monitor_.latest("a")->xids.at(0).xid, 63U);
}

// NVML does not say which process has caused it.
TEST_F(NodeObserverTest, TheProcessOfAnXidIsLookedForThoughTheDriverHasToldOfIt) {
  raise(31, "b");
  log("NVRM: Xid (PCI:0000:20:00): 31, pid=7, name=a, Ch 00000010, MMU Fault");
  EXPECT_EQ(asked_owners_, std::vector<std::uint32_t>{7});
}

TEST_F(NodeObserverTest, DevicesThatAreNoGpusOfTheNodeTellNothing) {
  log("NVRM: Xid (PCI:0000:99:00): 79, pid=7, name=a, GPU has fallen off the bus.");
  EXPECT_TRUE(told().empty());
}

TEST_F(NodeObserverTest, AGpuThatIsNotListedAnyMoreIsStillKnownByItsPlace) {
  list({"a", "c", "d"});
  told();
  log("NVRM: Xid (PCI:0000:20:00): 79, pid=7, name=a, GPU has fallen off the bus.");
  const auto all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].gpu_uuid, "b");
}

TEST_F(NodeObserverTest, AGpuThatComesBackWithAnotherIndexIsKnownByItsUuid) {
  list({"a", "c", "d"});
  auto all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].gpu_uuid, "b");
  EXPECT_EQ(all[0].evidence.kind, EvidenceKind::kLost);

  list({"a", "c", "d", "b"});
  EXPECT_TRUE(told().empty()) << "it has not answered yet";
  std::vector<hardware::GpuReading> readings(4);
  for (std::uint32_t i = 0; i < 4; ++i) readings[i].index = i;
  readings[1].slow.emplace().remap_pending = true;  // of "c"
  for (std::uint32_t i = 0; i < GpuWatch::kAnswers; ++i) read(readings);

  all = told();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].gpu_uuid, "c");
  EXPECT_EQ(all[0].evidence.kind, EvidenceKind::kRemapPending);
  EXPECT_EQ(all[1].gpu_uuid, "b");
  EXPECT_EQ(all[1].evidence.kind, EvidenceKind::kLost);
  EXPECT_TRUE(all[1].evidence.is_over);

  readings[3].condition = GpuCondition::kLost;
  readings[3].problem = "GPU is lost";
  read(readings);
  all = told();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].gpu_uuid, "b");
}

TEST_F(NodeObserverTest, ANodeHasTheModesWhoseMechanismsAreThere) {
  using Modes = std::vector<model::ShareMode>;
  EXPECT_EQ(described_with({}).share_modes, Modes{});
  EXPECT_EQ(described_with({.freezes_jobs = true}).share_modes,
            Modes{model::ShareMode::kTimeSlice});
  EXPECT_EQ(described_with({.freezes_jobs = true, .serves_mps = true}).share_modes,
            (Modes{model::ShareMode::kTimeSlice, model::ShareMode::kMps}))
      << "ascending";
}

}  // namespace
}  // namespace gpu_platform::monitoring
