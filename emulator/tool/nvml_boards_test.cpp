#include <set>
#include <vector>

#include "tool/faults.h"
#include "tool/library_fixture.h"

// These tests check the library's answers for each kind of board.

namespace gpu_emulator {
namespace {

class Boards : public Library {
 protected:
  std::uint32_t field(unsigned index, unsigned id, unsigned scope = 0) {
    const auto read = find<decltype(nvmlDeviceGetFieldValues)>("nvmlDeviceGetFieldValues");
    FieldValue value{.field_id = id, .scope_id = scope};
    EXPECT_EQ(read(gpu(index), 1, &value), kSuccess);
    field_return_ = value.nvml_return;
    return value.value.uint_value;
  }

  // Active links from one GPU straight to another.
  unsigned direct_links(unsigned from, unsigned to) {
    const auto is_active = find<decltype(nvmlDeviceGetNvLinkState)>("nvmlDeviceGetNvLinkState");
    const auto remote =
        find<decltype(nvmlDeviceGetNvLinkRemotePciInfo_v2)>("nvmlDeviceGetNvLinkRemotePciInfo_v2");
    const auto pci_of = find<decltype(nvmlDeviceGetPciInfo_v3)>("nvmlDeviceGetPciInfo_v3");
    PciInfo target{};
    EXPECT_EQ(pci_of(gpu(to), &target), kSuccess);
    unsigned links = 0;
    unsigned active = 0;
    for (unsigned i = 0; is_active(gpu(from), i, &active) == kSuccess; ++i) {
      PciInfo peer{};
      if (active != 0 && remote(gpu(from), i, &peer) == kSuccess) {
        links += std::string(peer.bus_id) == target.bus_id ? 1 : 0;
      }
    }
    return links;
  }

  unsigned level(unsigned a, unsigned b) {
    const auto ancestor =
        find<decltype(nvmlDeviceGetTopologyCommonAncestor)>("nvmlDeviceGetTopologyCommonAncestor");
    unsigned value = 99;
    EXPECT_EQ(ancestor(gpu(a), gpu(b), &value), kSuccess);
    return value;
  }

  unsigned p2p_nvlink(unsigned a, unsigned b) {
    const auto status = find<decltype(nvmlDeviceGetP2PStatus)>("nvmlDeviceGetP2PStatus");
    unsigned value = 99;
    EXPECT_EQ(status(gpu(a), gpu(b), 2, &value), kSuccess);
    return value;
  }

  int field_return_ = 0;
};

struct BoardFacts {
  const char* board;
  unsigned gpus;
  const char* name_of_first;
  unsigned links;  // of the first GPU, active or not
  bool has_mig;
  bool remaps_rows;
};

class EveryBoard : public Boards, public ::testing::WithParamInterface<BoardFacts> {};

TEST_P(EveryBoard, AnswersAsTheRealOneWould) {
  const BoardFacts& facts = GetParam();
  open_board(facts.board);
  initialise();
  const auto count = find<decltype(nvmlDeviceGetCount_v2)>("nvmlDeviceGetCount_v2");
  const auto name = find<decltype(nvmlDeviceGetName)>("nvmlDeviceGetName");
  const auto mig = find<decltype(nvmlDeviceGetMigMode)>("nvmlDeviceGetMigMode");
  const auto rows = find<decltype(nvmlDeviceGetRemappedRows)>("nvmlDeviceGetRemappedRows");
  const auto pages = find<decltype(nvmlDeviceGetRetiredPagesPendingStatus)>(
      "nvmlDeviceGetRetiredPagesPendingStatus");
  const auto fan = find<decltype(nvmlDeviceGetFanSpeed)>("nvmlDeviceGetFanSpeed");
  const auto link = find<decltype(nvmlDeviceGetNvLinkState)>("nvmlDeviceGetNvLinkState");
  unsigned value = 0;
  unsigned other = 0;
  char text[96];

  EXPECT_EQ(count(&value), kSuccess);
  EXPECT_EQ(value, facts.gpus);
  EXPECT_EQ(name(gpu(0), text, sizeof text), kSuccess);
  EXPECT_STREQ(text, facts.name_of_first);
  EXPECT_EQ(mig(gpu(0), &value, &other), facts.has_mig ? kSuccess : kNotSupported);
  unsigned answers[4];
  EXPECT_EQ(rows(gpu(0), &answers[0], &answers[1], &answers[2], &answers[3]),
            facts.remaps_rows ? kSuccess : kNotSupported);
  EXPECT_EQ(pages(gpu(0), &value), facts.remaps_rows ? kNotSupported : kSuccess);
  EXPECT_EQ(fan(gpu(0), &value), kNotSupported);
  EXPECT_EQ(link(gpu(0), 0, &value), facts.links > 0 ? kSuccess : kNotSupported);
  EXPECT_EQ(field(0, 91), facts.links);
  EXPECT_EQ(field_return_, facts.links > 0 ? kSuccess : kNotSupported);
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryBoard,
    ::testing::Values(BoardFacts{"dgx-a100", 8, "NVIDIA A100-SXM4-80GB", 12, true, true},
                      BoardFacts{"dgx-h100", 8, "NVIDIA H100 80GB HBM3", 18, true, true},
                      BoardFacts{"hgx-h200", 8, "NVIDIA H200", 18, true, true},
                      BoardFacts{"b200", 8, "NVIDIA B200", 18, true, true},
                      BoardFacts{"h200-single", 1, "NVIDIA H200", 18, true, true},
                      BoardFacts{"t4x4", 4, "Tesla T4", 0, false, false},
                      BoardFacts{"l40s-x8", 8, "NVIDIA L40S", 0, false, true},
                      BoardFacts{"v100x8", 8, "Tesla V100-SXM2-16GB", 6, false, false},
                      BoardFacts{"a100-pcie-x4", 4, "NVIDIA A100 80GB PCIe", 12, true, true},
                      BoardFacts{"mixed", 4, "Tesla V100-PCIE-32GB", 0, false, false}),
    [](const auto& test) {
      std::string name = test.param.board;
      std::erase(name, '-');
      return name;
    });

TEST_F(Boards, V100sFormAHybridCubeMesh) {
  open_board("v100x8");
  initialise();
  // Links between GPUs as nvidia-smi topo -m prints them for a DGX-1.
  constexpr unsigned kLinks[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0},
                                     {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
                                     {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                     {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};

  for (unsigned a = 0; a < 8; ++a) {
    for (unsigned b = 0; b < 8; ++b) {
      if (a == b) continue;
      EXPECT_EQ(direct_links(a, b), kLinks[a][b]) << a << " to " << b;
      EXPECT_EQ(p2p_nvlink(a, b) == 0, kLinks[a][b] > 0) << a << " to " << b;
    }
  }
  EXPECT_EQ(level(0, 5), 50u);
  EXPECT_EQ(level(0, 1), 10u);
  EXPECT_EQ(level(0, 2), 30u);
}

TEST_F(Boards, BridgesJoinA100sInPairs) {
  open_board("a100-pcie-x4");
  initialise();

  EXPECT_EQ(direct_links(0, 1), 12u);
  EXPECT_EQ(direct_links(1, 2), 0u);
  EXPECT_EQ(direct_links(3, 2), 12u);
  EXPECT_EQ(p2p_nvlink(1, 2), 5u) << "not supported";
}

TEST_F(Boards, PeersAgreeOnTheNumberOfALink) {
  open_board("v100x8");
  initialise();
  const auto remote =
      find<decltype(nvmlDeviceGetNvLinkRemotePciInfo_v2)>("nvmlDeviceGetNvLinkRemotePciInfo_v2");
  const auto pci_of = find<decltype(nvmlDeviceGetPciInfo_v3)>("nvmlDeviceGetPciInfo_v3");
  const auto by_bus =
      find<decltype(nvmlDeviceGetHandleByPciBusId_v2)>("nvmlDeviceGetHandleByPciBusId_v2");

  for (unsigned link = 0; link < 6; ++link) {
    PciInfo peer{};
    PciInfo back{};
    PciInfo self{};
    nvmlDevice_t device = nullptr;
    ASSERT_EQ(remote(gpu(0), link, &peer), kSuccess);
    ASSERT_EQ(by_bus(peer.bus_id, &device), kSuccess);
    ASSERT_EQ(remote(device, field(0, 146, link), &back), kSuccess);
    ASSERT_EQ(pci_of(gpu(0), &self), kSuccess);
    EXPECT_STREQ(back.bus_id, self.bus_id) << "link " << link;
  }
}

TEST_F(Boards, DgxA100HasFourGpusOnEachSocketInPairs) {
  open_board("dgx-a100");
  initialise();
  const auto affinity = find<decltype(nvmlDeviceGetMemoryAffinity)>("nvmlDeviceGetMemoryAffinity");
  const auto cpus =
      find<decltype(nvmlDeviceGetCpuAffinityWithinScope)>("nvmlDeviceGetCpuAffinityWithinScope");
  std::vector<unsigned long> nodes;
  std::set<unsigned long> sockets;
  for (unsigned i = 0; i < 8; ++i) {
    unsigned long node = 0;
    unsigned long socket = 0;
    EXPECT_EQ(affinity(gpu(i), 1, &node, 0), kSuccess);
    EXPECT_EQ(affinity(gpu(i), 1, &socket, 1), kSuccess);
    nodes.push_back(node);
    sockets.insert(socket);
  }
  unsigned long own[4] = {};
  unsigned long all[4] = {};
  EXPECT_EQ(cpus(gpu(0), 4, own, 0), kSuccess);
  EXPECT_EQ(cpus(gpu(0), 4, all, 1), kSuccess);

  EXPECT_EQ(nodes, (std::vector<unsigned long>{8, 8, 2, 2, 128, 128, 32, 32}));
  EXPECT_EQ(sockets, (std::set<unsigned long>{0x0f, 0xf0}));
  EXPECT_EQ(own[0], 0xffff'0000'0000'0000ul) << "CPUs 48-63";
  EXPECT_EQ(all[0], ~0ul) << "CPUs 0-63";
  EXPECT_EQ(all[1], 0ul) << "the other socket";
  EXPECT_EQ(level(0, 1), 20u);
  EXPECT_EQ(level(0, 2), 50u);
  EXPECT_EQ(p2p_nvlink(0, 7), 0u) << "through the switches";
}

TEST_F(Boards, NearestGpusAreThoseAtOneLevel) {
  open_board("l40s-x8");
  initialise();
  const auto nearest =
      find<decltype(nvmlDeviceGetTopologyNearestGpus)>("nvmlDeviceGetTopologyNearestGpus");
  unsigned count = 0;
  nvmlDevice_t found[8] = {};

  EXPECT_EQ(nearest(gpu(0), 10, &count, nullptr), kSuccess);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(nearest(gpu(0), 10, &count, found), kSuccess);
  EXPECT_EQ(found[0], gpu(1));
  EXPECT_EQ(nearest(gpu(0), 50, &(count = 0), nullptr), kSuccess);
  EXPECT_EQ(count, 4u) << "the other socket";
}

TEST_F(Boards, TellOfAFabricWhereAManagerJoinsThem) {
  const auto ask = [&] {
    initialise();
    GpuFabricInfoV3 info{};
    info.version = version_of<GpuFabricInfoV3>(3);
    const auto read = find<decltype(nvmlDeviceGetGpuFabricInfoV)>("nvmlDeviceGetGpuFabricInfoV");
    const Return result = read(gpu(0), reinterpret_cast<GpuFabricInfoV2*>(&info));
    return std::pair(result, info.state);
  };

  EXPECT_EQ(ask(), std::pair(kSuccess, static_cast<unsigned char>(3))) << "completed";
  open_board("dgx-a100");
  EXPECT_EQ(ask().first, kNotSupported);
}

TEST_F(Boards, ListMigSizesThatCanCoexistByTheRealTable) {
  initialise();
  const auto info =
      find<decltype(nvmlDeviceGetGpuInstanceProfileInfoV)>("nvmlDeviceGetGpuInstanceProfileInfoV");
  const auto places = find<decltype(nvmlDeviceGetGpuInstancePossiblePlacements_v2)>(
      "nvmlDeviceGetGpuInstancePossiblePlacements_v2");
  GpuInstanceProfileInfoV2 profile{};
  profile.version = version_of<GpuInstanceProfileInfoV2>(2);
  GpuInstancePlacement found[8] = {};
  unsigned count = 0;

  EXPECT_EQ(info(gpu(0), 2, &profile), kSuccess);  // three slices
  EXPECT_STREQ(profile.name, "MIG 3g.40gb");
  EXPECT_EQ(profile.multiprocessor_count, 60u);
  EXPECT_EQ(info(gpu(0), 5, &profile), kNotSupported) << "eight slices";
  EXPECT_EQ(info(gpu(0), 99, &profile), kInvalidArgument);
  profile.version = 7;
  EXPECT_EQ(info(gpu(0), 2, &profile), kArgumentVersionMismatch);
  if (geteuid() != 0) {
    EXPECT_EQ(places(gpu(0), 9, nullptr, &count), kNoPermission);
    return;
  }
  EXPECT_EQ(places(gpu(0), 9, nullptr, &count), kSuccess);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(places(gpu(0), 9, found, &count), kSuccess);
  EXPECT_EQ(found[1].start, 4u);
  EXPECT_EQ(found[1].size, 4u) << "memory slices, though it has three of compute";
  EXPECT_EQ(places(gpu(0), 19, found, &(count = 3)), kInsufficientSize);
  EXPECT_EQ(count, 7u);
}

TEST_F(Boards, WithEccOffSayThatItIsNotSupported) {
  open_board("mixed");
  initialise();
  const auto errors = find<decltype(nvmlDeviceGetTotalEccErrors)>("nvmlDeviceGetTotalEccErrors");
  unsigned long long count = 0;

  EXPECT_EQ(errors(gpu(2), 0, 0, &count), kSuccess);
  EXPECT_EQ(errors(gpu(3), 0, 0, &count), kNotSupported);
}

TEST_F(Boards, KnowOnlyTheFieldsOfTheirDriver) {
  open_board("t4x4");  // driver 535
  initialise();

  field(0, 230);
  EXPECT_EQ(field_return_, kInvalidArgument);
  EXPECT_EQ(field(0, 186), 9000u) << "power in milliwatts";
  field(0, 82);
  EXPECT_EQ(field_return_, kNotSupported) << "no memory temperature";
}

// The last field of each branch and the first that it has not.
TEST_F(Boards, EndTheirFieldsWhereTheHeaderOfTheirBranchDoes) {
  const std::tuple<const char*, unsigned> cases[] = {
      {"v100x8", 196}, {"dgx-h100", 199}, {"dgx-a100", 268}, {"b200", 273}};
  for (const auto& [board, last] : cases) {
    open_board(board);
    initialise();
    field(0, last);
    EXPECT_NE(field_return_, kInvalidArgument) << board;
    field(0, last + 1);
    EXPECT_EQ(field_return_, kInvalidArgument) << board;
  }
}

TEST_F(Boards, TellPowerByScopeAndArchitecture) {
  for (const auto& [board, has_average] : {std::pair("v100x8", false), std::pair("dgx-a100", false),
                                           std::pair("l40s-x8", true), std::pair("b200", true)}) {
    open_board(board);
    initialise();
    field(0, 185);
    EXPECT_EQ(field_return_, has_average ? kSuccess : kNotSupported) << board;
    EXPECT_GT(field(0, 186), 0u) << board;
    EXPECT_EQ(field_return_, kSuccess) << board;
    field(0, 186, 1);
    EXPECT_EQ(field_return_, kNotSupported) << board << ": no module with a CPU";
    field(0, 186, 9);
    EXPECT_EQ(field_return_, kInvalidArgument) << board;
  }
}

TEST_F(Boards, TellDistancesToTheirGreatestTemperatureFromAdaOn) {
  const auto threshold =
      find<decltype(nvmlDeviceGetTemperatureThreshold)>("nvmlDeviceGetTemperatureThreshold");
  initialise();
  unsigned degrees = 0;

  EXPECT_EQ(static_cast<int>(field(0, 193)), -7) << "shutdown at 92, in operation up to 85";
  EXPECT_EQ(static_cast<int>(field(0, 194)), -2);
  EXPECT_EQ(field(0, 196), 0u);
  EXPECT_EQ(threshold(gpu(0), 3, &degrees), kNotSupported);
  open_board("dgx-a100");
  initialise();
  field(0, 193);
  EXPECT_EQ(field_return_, kNotSupported);
  const auto older =
      find<decltype(nvmlDeviceGetTemperatureThreshold)>("nvmlDeviceGetTemperatureThreshold");
  EXPECT_EQ(older(gpu(0), 3, &degrees), kSuccess);
  EXPECT_GT(degrees, 80u);
}

TEST_F(Boards, CountPacketsOfLinksOfTheFifthGeneration) {
  open_board("b200");
  initialise();
  ASSERT_TRUE(state().change(0, [](GpuState& gpu) { gpu.integrals.busy_us = 1'000'000; }));

  EXPECT_GT(field(0, 202, 3), 0u) << "bytes sent";
  EXPECT_GT(field(0, 201, 3), 0u) << "packets sent";
  EXPECT_EQ(field(0, 208, 3), 0u) << "errors";
  EXPECT_EQ(field_return_, kSuccess);
  field(0, 202, 18);
  EXPECT_EQ(field_return_, kInvalidArgument) << "no such link";
  open_board("hgx-h200");
  initialise();
  field(0, 202, 3);
  EXPECT_EQ(field_return_, kNotSupported) << "the fourth generation";
}

TEST_F(Boards, CountErrorsOfThePcieLink) {
  initialise();
  ASSERT_TRUE(inject_replays(*std::make_unique<StateFile>(state()), 0, 4));

  EXPECT_EQ(field(0, 94), 4u);
  EXPECT_EQ(field(0, 174), 4u) << "NAKs received";
  EXPECT_EQ(field(0, 180), 0u) << "fatal ones";
}

TEST_F(Boards, SlowTheirLinkAndClocksDownWhenIdleAsSmallBoardsDo) {
  open_board("l40s-x8");
  initialise();
  const auto generation =
      find<decltype(nvmlDeviceGetCurrPcieLinkGeneration)>("nvmlDeviceGetCurrPcieLinkGeneration");
  const auto performance =
      find<decltype(nvmlDeviceGetPerformanceState)>("nvmlDeviceGetPerformanceState");
  unsigned value = 0;
  StateFile file = state();

  EXPECT_EQ(generation(gpu(0), &value), kSuccess);
  EXPECT_EQ(value, 1u);
  EXPECT_EQ(performance(gpu(0), &value), kSuccess);
  EXPECT_EQ(value, 8u);
  ASSERT_TRUE(file.load(0, static_cast<std::uint64_t>(getpid()), 1 << 20, 50));
  EXPECT_EQ(generation(gpu(0), &value), kSuccess);
  EXPECT_EQ(value, 4u);
}

}  // namespace
}  // namespace gpu_emulator
