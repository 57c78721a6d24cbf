#include "discovery/describe_node.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

namespace gpu_platform::discovery {
namespace {

using hardware::GpuDescription;
using hardware::Inventory;
using hardware::LibraryProblem;
using hardware::ProblemKind;

GpuDescription h100(std::uint32_t index) {
  GpuDescription gpu;
  gpu.index = index;
  gpu.uuid = fmt::format("GPU-{}", index);
  gpu.model = "NVIDIA H100 80GB HBM3";
  gpu.pci_address = fmt::format("00000000:{:02X}:00.0", 0x1b + index);
  gpu.minor = index;
  gpu.memory = base::kMiB * 81559;
  gpu.numa_node = index / 4;
  gpu.compute_capability = hardware::ComputeCapability{9, 0};
  return gpu;
}

Inventory machine(std::uint32_t gpus) {
  Inventory inventory;
  inventory.host.name = "host-1";
  inventory.host.boot_id = "boot";
  inventory.host.cpus = {0, 1, 2, 5};
  inventory.host.memory = base::kGiB * 64;
  inventory.driver.driver_version = "550.90.07";
  for (std::uint32_t i = 0; i < gpus; ++i) inventory.gpus.push_back(h100(i));
  return inventory;
}

// Describes the machine as at the first look at it.
base::Result<DescribedNode> first_look(const NodeIdentity& identity, const Inventory& inventory) {
  KnownGpus known;
  return describe_node(identity, inventory, known);
}

TEST(DescribeNode, TakesWhatTheMachineSays) {
  const auto node = first_look({"dgx-h100-1", true}, machine(8));

  ASSERT_TRUE(node);
  EXPECT_TRUE(node->notes.empty());
  EXPECT_EQ(node->info.name, "dgx-h100-1");
  EXPECT_TRUE(node->info.emulated);
  EXPECT_EQ(node->info.boot_id, "boot");
  EXPECT_EQ(node->info.cpus, 4u);
  EXPECT_EQ(node->info.memory, base::kGiB * 64);
  EXPECT_EQ(node->info.driver_version, "550.90.07");
  ASSERT_EQ(node->info.gpus.size(), 8u);
  const model::GpuInfo& last = node->info.gpus.back();
  EXPECT_EQ(last.uuid, "GPU-7");
  EXPECT_EQ(last.type, "H100-80GB");
  EXPECT_EQ(last.memory, base::kMiB * 81559);
  EXPECT_EQ(last.minor, 7u);
  EXPECT_EQ(last.numa_node, 1);
  EXPECT_EQ(last.compute_major, 9u);
}

TEST(DescribeNode, NamesARealNodeAfterItsHost) {
  EXPECT_EQ(first_look({}, machine(1))->info.name, "host-1");
}

TEST(DescribeNode, WritesPciAddressesInOneSpelling) {
  Inventory inventory = machine(2);
  inventory.gpus[0].pci_address = "0000:9D:00.0";

  const auto node = first_look({}, inventory);

  EXPECT_EQ(node->info.gpus[0].pci_address, "00000000:9d:00.0");
  EXPECT_EQ(node->info.gpus[1].pci_address, "00000000:1c:00.0");
}

TEST(DescribeNode, RefusesTwoGpusWithOneUuid) {
  Inventory inventory = machine(3);
  inventory.gpus[2].uuid = "GPU-0";

  const auto node = first_look({}, inventory);

  ASSERT_FALSE(node);
  EXPECT_NE(node.error().message.find("UUID GPU-0"), std::string::npos) << node.error().message;
}

TEST(DescribeNode, RefusesTwoGpusAtOnePciAddressInAnyCase) {
  Inventory inventory = machine(2);
  inventory.gpus[1].pci_address = "0000:1b:00.0";

  const auto node = first_look({}, inventory);

  ASSERT_FALSE(node);
  EXPECT_NE(node.error().message.find("PCI address 00000000:1b:00.0"), std::string::npos)
      << node.error().message;
}

TEST(DescribeNode, LeavesOutGpusThatCannotBeUsedAndSaysWhy) {
  Inventory inventory = machine(4);
  inventory.gpus[0].problem = "GPU is lost (15)";
  inventory.gpus[1].uuid.reset();
  inventory.gpus[2].memory.reset();

  const auto node = first_look({}, inventory);

  ASSERT_TRUE(node);
  ASSERT_EQ(node->info.gpus.size(), 1u);
  EXPECT_EQ(node->info.gpus[0].uuid, "GPU-3");
  ASSERT_EQ(node->notes.size(), 3u);
  EXPECT_NE(node->notes[0].find("GPU 0 of host-1"), std::string::npos);
  EXPECT_NE(node->notes[0].find("GPU is lost"), std::string::npos);
}

TEST(DescribeNode, LeavesOutAGpuWhoseUuidChangesUntilItIsTheFormerOne) {
  KnownGpus known;
  Inventory changed = machine(2);
  changed.gpus[1].uuid = "GPU-other";
  ASSERT_TRUE(describe_node({}, machine(2), known));

  const auto other = describe_node({}, changed, known);
  const auto still_other = describe_node({}, changed, known);
  const auto former = describe_node({}, machine(2), known);

  ASSERT_TRUE(other && still_other && former);
  ASSERT_EQ(other->info.gpus.size(), 1u);
  EXPECT_EQ(other->info.gpus[0].uuid, "GPU-0");
  ASSERT_EQ(other->notes.size(), 1u);
  EXPECT_NE(other->notes[0].find("was GPU-1 and is GPU-other now"), std::string::npos)
      << other->notes[0];
  EXPECT_EQ(still_other->info.gpus.size(), 1u);
  EXPECT_EQ(former->info.gpus.size(), 2u);
}

TEST(DescribeNode, BelievesANewUuidAfterAReboot) {
  KnownGpus known;
  Inventory exchanged = machine(1);
  exchanged.host.boot_id = "another boot";
  exchanged.gpus[0].uuid = "GPU-new";
  ASSERT_TRUE(describe_node({}, machine(1), known));

  const auto node = describe_node({}, exchanged, known);

  ASSERT_TRUE(node);
  EXPECT_EQ(node->info.gpus.at(0).uuid, "GPU-new");
}

TEST(DescribeNode, LetsAGpuMoveToAnotherPlace) {
  KnownGpus known;
  Inventory moved = machine(1);
  moved.gpus[0].pci_address = "00000000:AA:00.0";
  ASSERT_TRUE(describe_node({}, machine(1), known));

  EXPECT_EQ(describe_node({}, moved, known)->info.gpus.size(), 1u);
}

TEST(DescribeNode, SaysThatAFallBackIsUsed) {
  Inventory inventory = machine(1);
  inventory.fallback = "NVML cannot be used, so nvidia-smi is asked instead";

  const auto node = first_look({}, inventory);

  ASSERT_TRUE(node);
  EXPECT_EQ(node->notes, std::vector<std::string>{
                             "host-1: NVML cannot be used, so nvidia-smi is asked instead"});
}

TEST(DescribeNode, TellsHowTheMachineIsBuilt) {
  Inventory inventory = machine(1);
  inventory.host.numa_nodes = {{0, {0, 1, 2}, base::kGiB, 0}, {1, {5}, std::nullopt, std::nullopt}};

  const auto node = first_look({}, inventory);

  ASSERT_TRUE(node);
  EXPECT_EQ(node->info.topology.numa_nodes,
            (std::vector<model::NumaNode>{{0, 0, "0-2", base::kGiB}, {1, -1, "5", base::Bytes()}}));
  EXPECT_TRUE(node->info.topology.links.empty());
}

TEST(DescribeNode, GivesEachPairOfGpusItsLink) {
  using hardware::LinkKind;
  Inventory inventory = machine(3);
  inventory.links = {{0, 1, LinkKind::kNvLink, 18, 6}, {1, 2, LinkKind::kPhb, 0, 0}};

  const auto node = first_look({}, inventory);

  ASSERT_TRUE(node);
  EXPECT_EQ(node->info.topology.links,
            (std::vector<model::GpuLink>{{model::LinkKind::kNvLink, 18, 6},
                                         {model::LinkKind::kUnknown, 0, 0},
                                         {model::LinkKind::kHostBridge, 0, 0}}));
}

TEST(DescribeNode, KeepsLinksWithTheirGpusWhereOneIsLeftOut) {
  using hardware::LinkKind;
  Inventory inventory = machine(4);
  inventory.gpus[1].problem = "GPU is lost (15)";
  inventory.links = {{0, 1, LinkKind::kNvLink, 1, 6}, {0, 2, LinkKind::kPix, 0, 0},
                     {0, 3, LinkKind::kPxb, 0, 0},    {1, 2, LinkKind::kNvLink, 1, 6},
                     {1, 3, LinkKind::kNvLink, 1, 6}, {2, 3, LinkKind::kNode, 0, 0}};

  const auto node = first_look({}, inventory);

  ASSERT_TRUE(node);
  ASSERT_EQ(node->info.gpus.size(), 3u);
  EXPECT_EQ(node->info.topology.links,
            (std::vector<model::GpuLink>{{model::LinkKind::kPix, 0, 0},
                                         {model::LinkKind::kPxb, 0, 0},
                                         {model::LinkKind::kNode, 0, 0}}));
}

TEST(DescribeNode, KnowsEveryKindOfLink) {
  using hardware::LinkKind;
  const std::pair<LinkKind, model::LinkKind> kinds[] = {
      {LinkKind::kNvLink, model::LinkKind::kNvLink}, {LinkKind::kPix, model::LinkKind::kPix},
      {LinkKind::kPxb, model::LinkKind::kPxb},       {LinkKind::kPhb, model::LinkKind::kHostBridge},
      {LinkKind::kNode, model::LinkKind::kNode},     {LinkKind::kSystem, model::LinkKind::kSystem}};
  for (const auto& [told, known] : kinds) {
    Inventory inventory = machine(2);
    inventory.links = {{0, 1, told, 0, 0}};
    EXPECT_EQ(first_look({}, inventory)->info.topology.links.at(0).kind, known);
  }
}

TEST(DescribeNode, DoesWithoutDataThatADriverWithholds) {
  Inventory inventory = machine(1);
  inventory.gpus[0].pci_address.reset();
  inventory.gpus[0].numa_node.reset();
  inventory.gpus[0].minor.reset();

  const auto node = first_look({}, inventory);

  ASSERT_TRUE(node);
  EXPECT_EQ(node->info.gpus[0].pci_address, "");
  EXPECT_EQ(node->info.gpus[0].numa_node, -1);
  EXPECT_EQ(node->notes.size(), 1u);
}

TEST(DescribeNode, MakesACpuNodeOfAMachineWithoutGpus) {
  Inventory inventory = machine(0);
  inventory.problem = LibraryProblem{ProblemKind::kNoDriver, "the kernel module is not loaded"};

  const auto node = first_look({}, inventory);

  ASSERT_TRUE(node);
  EXPECT_TRUE(node->info.gpus.empty());
  EXPECT_EQ(node->info.cpus, 4u);
  ASSERT_EQ(node->notes.size(), 1u);
  EXPECT_EQ(node->notes[0], "host-1 has no GPUs: the kernel module is not loaded");
}

TEST(DescribeNode, RefusesAMachineWithoutCpus) {
  Inventory inventory = machine(1);
  inventory.host.cpus.clear();

  EXPECT_FALSE(first_look({}, inventory));
}

}  // namespace
}  // namespace gpu_platform::discovery
