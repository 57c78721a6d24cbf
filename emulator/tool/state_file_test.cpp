#include "tool/node_files.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <fmt/format.h>

namespace gpu_emulator {
namespace {

using gpu_platform::base::ErrorCode;
using Access = StateFile::Access;

constexpr std::uint64_t kMebibyte = 1 << 20;
constexpr std::uint64_t kGiB = 1 << 30;
constexpr std::uint64_t kNobody = 4'194'303;

class Node : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/state_file_test.XXXXXX";
    root_ = mkdtemp(path);
    auto board = load_board(BOARDS_DIR "/dgx-h100.yaml");
    ASSERT_TRUE(board) << board.error().message;
    board_ = *board;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string dir(const std::string& node) const { return root_ + "/" + node; }
  std::string state(const std::string& node) const { return dir(node) + "/state"; }

  StateFile made(const std::string& node, Access access = Access::kWrite) {
    const Status status = create_node(board_, node, dir(node));
    EXPECT_TRUE(status) << status.error().message;
    auto file = StateFile::open(state(node), access);
    EXPECT_TRUE(file) << file.error().message;
    return std::move(*file);
  }

  std::string root_;
  Board board_;
};

// A user who may write to it can make the GPUs of the site fail.
TEST_F(Node, IsItsOwnersAloneToChange) {
  const auto mode = [&] { return std::filesystem::status(state("n1")).permissions(); };
  constexpr auto kReadable = static_cast<std::filesystem::perms>(0644);
  (void)made("n1");
  EXPECT_EQ(mode(), kReadable);
  std::filesystem::permissions(state("n1"), static_cast<std::filesystem::perms>(0666));
  (void)made("n1");
  EXPECT_EQ(mode(), kReadable) << "as boards were made before";
}

TEST_F(Node, HasUuidsOfItsOwnThatStayTheSame) {
  std::set<std::string> uuids;
  for (int i = 1; i <= 16; ++i) {
    const StateFile file = made(fmt::format("dgx-h100-{}", i));
    for (std::uint32_t k = 0; k < file.state().gpu_count; ++k)
      uuids.insert(file.state().gpus[k].uuid);
  }
  EXPECT_EQ(uuids.size(), 128u);

  std::filesystem::remove_all(dir("dgx-h100-7"));
  EXPECT_TRUE(uuids.contains(made("dgx-h100-7").state().gpus[3].uuid));
}

TEST_F(Node, KeepsItsLoadWhenItIsMadeAgain) {
  ASSERT_TRUE(made("n1").load(2, kNobody, kGiB, 50));

  const StateFile again = made("n1");

  EXPECT_EQ(read_gpu(again.state().gpus[2]).used_bytes, kGiB);
}

TEST_F(Node, IsMadeAnewWhenTheBoardChanged) {
  ASSERT_TRUE(made("n1").load(2, kNobody, kGiB, 50));
  board_.file_hash += 1;
  board_.gpus.pop_back();

  const StateFile again = made("n1");

  EXPECT_EQ(again.state().gpu_count, 7u);
  EXPECT_EQ(read_gpu(again.state().gpus[2]).used_bytes, 0u);
}

TEST_F(Node, IsMadeAnewWhenItsStateIsDamaged) {
  made("n1");
  std::filesystem::resize_file(state("n1"), 100);
  EXPECT_EQ(StateFile::open(state("n1"), Access::kRead).error().code, ErrorCode::kDataLoss);

  EXPECT_EQ(made("n1").state().gpu_count, 8u);
}

TEST_F(Node, IsRefusedUnderANameThatIsNoFileName) {
  for (const char* name : {"", "..", "a/b", ".hidden", "ä", "a b"}) {
    EXPECT_FALSE(create_node(board_, name, dir("x"))) << name;
  }
}

TEST_F(Node, SharesALoadWithEveryOpenState) {
  StateFile writer = made("n1");
  const StateFile reader = made("n1", Access::kRead);

  ASSERT_TRUE(writer.load(0, static_cast<std::uint64_t>(getpid()), 3 * kGiB, 40));
  const GpuReading now = read_gpu(reader.state().gpus[0]);

  EXPECT_EQ(now.process_count, 1u);
  EXPECT_EQ(now.used_bytes, 3 * kGiB);
  EXPECT_EQ(now.utilization_percent, 40u);
}

TEST_F(Node, ChangesTheLoadOfAProcessInsteadOfAddingToIt) {
  StateFile file = made("n1");
  ASSERT_TRUE(file.load(0, kNobody, 60 * kGiB, 40));

  ASSERT_TRUE(file.load(0, kNobody, 70 * kGiB, 90));

  const GpuReading now = read_gpu(file.state().gpus[0]);
  EXPECT_EQ(now.process_count, 1u);
  EXPECT_EQ(now.used_bytes, 70 * kGiB);
  EXPECT_EQ(now.utilization_percent, 90u);
}

TEST_F(Node, RefusesMoreMemoryThanIsFree) {
  StateFile file = made("n1");
  ASSERT_TRUE(file.load(0, kNobody, 60 * kGiB, 0));

  const Status second = file.load(0, kNobody - 1, 30 * kGiB, 0);

  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("out of memory"), std::string::npos);
  EXPECT_EQ(read_gpu(file.state().gpus[0]).used_bytes, 60 * kGiB);
}

TEST_F(Node, RefusesMoreProcessesThanItCanShow) {
  StateFile file = made("n1");
  for (std::uint64_t i = 0; i < kMaxProcesses; ++i)
    ASSERT_TRUE(file.load(0, kNobody - i, kMebibyte, 1));

  EXPECT_FALSE(file.load(0, kNobody - kMaxProcesses, kMebibyte, 1));
  EXPECT_TRUE(file.load(0, kNobody, kMebibyte, 2)) << "one that is there may change";
  EXPECT_EQ(read_gpu(file.state().gpus[0]).utilization_percent, 65u);
}

TEST_F(Node, KnowsItsGpusOnly) {
  StateFile file = made("n1");

  EXPECT_EQ(file.load(8, kNobody, 0, 0).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(file.clear(8).error().code, ErrorCode::kNotFound);
}

TEST_F(Node, ClearsOneProcessOrAll) {
  StateFile file = made("n1");
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(file.load(0, kNobody - i, kGiB, 10));

  ASSERT_TRUE(file.clear(0, kNobody));
  EXPECT_EQ(read_gpu(file.state().gpus[0]).process_count, 2u);
  ASSERT_TRUE(file.clear(0));
  EXPECT_EQ(read_gpu(file.state().gpus[0]).process_count, 0u);
}

// Two processes change together in each write, so a reader that sees them differ saw half a change.
TEST_F(Node, ShowsNoHalfChangeToReaders) {
  StateFile writer = made("n1");
  const StateFile reader = made("n1", Access::kRead);
  ASSERT_TRUE(writer.load(0, kNobody, 0, 0));
  std::atomic<bool> is_done = false;
  std::thread changes([&] {
    for (std::uint64_t i = 1; i <= 2000; ++i) (void)writer.load(0, kNobody, i * kMebibyte, i % 100);
    is_done = true;
  });

  std::uint64_t halves = 0;
  while (!is_done) {
    ProcessReading processes[kMaxProcesses];
    const std::uint32_t count = copy_processes(reader.state().gpus[0], processes);
    if (count != 1 ||
        processes[0].memory_bytes / kMebibyte % 100 != processes[0].utilization_percent)
      ++halves;
  }
  changes.join();

  EXPECT_EQ(halves, 0u);
}

TEST_F(Node, IsReadableAfterAWriterDiedInTheMiddle) {
  StateFile file = made("n1");
  ASSERT_TRUE(file.load(0, kNobody, kGiB, 10));
  // A killed writer leaves an odd sequence.
  const int sequence_at =
      static_cast<int>(offsetof(BoardState, gpus) + offsetof(GpuState, sequence));
  std::fstream raw(state("n1"), std::ios::in | std::ios::out | std::ios::binary);
  raw.seekp(sequence_at);
  raw.put(1);
  raw.close();

  EXPECT_EQ(read_gpu(file.state().gpus[0]).used_bytes, kGiB);
  ASSERT_TRUE(file.load(0, kNobody, 2 * kGiB, 10));
  EXPECT_EQ(file.state().gpus[0].sequence.load() % 2, 0u);
}

TEST_F(Node, KnowsHowFarItsGpusAreApart) {
  const StateFile file = made("n1");

  EXPECT_EQ(file.state().topology[0][0], TopologyLevel::kInternal);
  EXPECT_EQ(file.state().topology[0][3], TopologyLevel::kNumaNode);
  EXPECT_EQ(file.state().topology[0][4], TopologyLevel::kSystem);
}

TEST_F(Node, DerivesDistanceFromThePathToTheHostBridge) {
  board_.file_hash += 1;
  board_.gpus[1].pcie_path = board_.gpus[0].pcie_path;
  board_.gpus[2].pcie_path = {board_.gpus[0].pcie_path[0], board_.gpus[0].pcie_path[1], "below"};
  board_.gpus[3].pcie_path = {board_.gpus[0].pcie_path[0], "beside"};
  const StateFile file = made("n1");

  EXPECT_EQ(file.state().topology[0][1], TopologyLevel::kSingleSwitch);
  EXPECT_EQ(file.state().topology[0][2], TopologyLevel::kMultipleSwitches);
  EXPECT_EQ(file.state().topology[3][0], TopologyLevel::kHostBridge);
}

TEST(StartTicks, TellProcessesApart) {
  EXPECT_GT(process_start_ticks(static_cast<std::uint64_t>(getpid())), 0u);
  EXPECT_EQ(process_start_ticks(kNobody), 0u);
}

}  // namespace
}  // namespace gpu_emulator
