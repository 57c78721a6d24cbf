#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <vector>

#include "tool/mig_fixture.h"

// Where instances may lie, on a state alone: all layouts of an A100 in every order, and the rules
// that refuse.

namespace gpu_emulator {
namespace {

struct Laid {
  const char* profile;
  std::uint32_t start;
  bool operator<(const Laid& other) const { return start < other.start; }
};
using Layout19 = std::vector<Laid>;

class MigRules : public ::testing::Test {
 protected:
  void SetUp() override { use("dgx-a100"); }
  // The first GPU of a board, with MIG on.
  void use(const char* name) {
    char path[] = "/tmp/mig_rules.XXXXXX";
    const std::string root = mkdtemp(path);
    const auto board = load_board(fmt::format("{}/{}.yaml", BOARDS_DIR, name));
    ASSERT_TRUE(board) << board.error().message;
    ASSERT_TRUE(create_node(*board, "n1", root));
    const auto file = StateFile::open(root + "/state", StateFile::Access::kRead);
    ASSERT_TRUE(file);
    gpu_ = std::make_unique<GpuState>();
    std::memcpy(static_cast<void*>(gpu_.get()), &file->state().gpus[0], sizeof(GpuState));
    std::filesystem::remove_all(root);
    gpu_->mig_mode = gpu_->mig_pending = static_cast<std::uint32_t>(Support::kOn);
  }
  MigResult create(const char* name, std::uint32_t start = kNoId, std::uint32_t* id = nullptr) {
    std::uint32_t unused = 0;
    const MigProfile* profile = profile_called(*gpu_, name);
    EXPECT_NE(profile, nullptr) << name;
    return create_gpu_instance(*gpu_, *profile, start, id == nullptr ? &unused : id);
  }
  std::uint32_t left(const char* name) {
    return remaining_instances(*gpu_, *profile_called(*gpu_, name));
  }
  void clear() {
    for (std::uint32_t i = 0; i < kMaxGpuInstances; ++i) drop_instance(*gpu_, {i, kNoId});
  }

  std::unique_ptr<GpuState> gpu_;
};

// The left half of the memory holds one instance of four slices or any mix of the smaller ones; the
// right half has one compute slice less.
std::vector<Layout19> layouts_of_a100() {
  std::vector<Layout19> lefts{{{"4g.40gb", 0}}, {{"3g.40gb", 0}}};
  const std::vector<Layout19> first{{{"2g.20gb", 0}}, {{"1g.10gb", 0}, {"1g.10gb", 1}}};
  const std::vector<Layout19> second{{{"2g.20gb", 2}}, {{"1g.10gb", 2}, {"1g.10gb", 3}}};
  for (const Layout19& a : first) {
    for (const Layout19& b : second) {
      lefts.push_back(a);
      lefts.back().insert(lefts.back().end(), b.begin(), b.end());
    }
  }
  const std::vector<Layout19> rights{{{"3g.40gb", 4}},
                                     {{"2g.20gb", 4}, {"1g.10gb", 6}},
                                     {{"1g.10gb", 4}, {"1g.10gb", 5}, {"1g.10gb", 6}}};
  std::vector<Layout19> all{{{"7g.80gb", 0}}};
  for (const Layout19& a : lefts) {
    for (const Layout19& b : rights) {
      all.push_back(a);
      all.back().insert(all.back().end(), b.begin(), b.end());
    }
  }
  return all;
}

TEST_F(MigRules, AllNineteenLayoutsOfAnA100AreMadeInEveryOrder) {
  const auto layouts = layouts_of_a100();
  ASSERT_EQ(layouts.size(), 19U);
  for (Layout19 layout : layouts) {
    do {
      clear();
      std::set<std::uint32_t> ids;
      for (const Laid& one : layout) {
        std::uint32_t id = 99;
        ASSERT_EQ(create(one.profile, one.start, &id), MigResult::kDone)
            << one.profile << "@" << one.start;
        ids.insert(id);
      }
      ASSERT_EQ(ids.size(), layout.size());
    } while (std::next_permutation(layout.begin(), layout.end()));
    // Nothing fits any more, though two instances of three slices leave a compute slice.
    for (const char* name : {"2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb", "1g.20gb", "1g.10gb"}) {
      EXPECT_EQ(left(name), 0U) << name;
    }
  }
}

TEST_F(MigRules, ThreeSlicesTakeFourOfTheMemory) {
  EXPECT_EQ(create("3g.40gb", 0), MigResult::kDone);

  EXPECT_EQ(create("1g.10gb", 3), MigResult::kNoRoom);
  EXPECT_EQ(left("1g.10gb"), 3U);
  EXPECT_EQ(create("3g.40gb", 4), MigResult::kDone);
  EXPECT_EQ(left("1g.10gb"), 0U) << "a compute slice is left, and no memory";
}

TEST_F(MigRules, AStartThatTheProfileLacksIsABadPlacement) {
  EXPECT_EQ(create("1g.10gb", 7), MigResult::kBadPlacement);
  EXPECT_EQ(create("2g.20gb", 1), MigResult::kBadPlacement);
  EXPECT_EQ(create("4g.40gb", 4), MigResult::kBadPlacement);
  EXPECT_EQ(create("3g.40gb", 99), MigResult::kBadPlacement);
  EXPECT_FALSE(has_instances(*gpu_));
}

TEST_F(MigRules, TheSetOfMediaEnginesIsThereOnce) {
  EXPECT_EQ(create("1g.10gb+me"), MigResult::kDone);

  EXPECT_EQ(create("1g.10gb+me"), MigResult::kNoRoom);
  EXPECT_EQ(left("1g.10gb"), 6U);
}

TEST_F(MigRules, DoubleMemoryEndsAtTheLastSlice) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(create("1g.20gb"), MigResult::kDone) << i;

  EXPECT_EQ(create("1g.10gb"), MigResult::kNoRoom);
}

TEST_F(MigRules, TheDriverChoosesStartsInItsOrderAndNumbersByPlace) {
  std::vector<std::uint32_t> ids;
  for (int i = 0; i < 7; ++i)
    ASSERT_EQ(create("1g.10gb", kNoId, &ids.emplace_back()), MigResult::kDone);
  EXPECT_EQ(ids, (std::vector<std::uint32_t>{13, 11, 12, 7, 8, 9, 10}));

  clear();
  std::uint32_t id = 99;
  EXPECT_EQ(create("3g.40gb", kNoId, &id), MigResult::kDone);
  EXPECT_EQ(id, 2U);
  EXPECT_EQ(create("3g.40gb", kNoId, &id), MigResult::kDone);
  EXPECT_EQ(id, 1U);
}

TEST_F(MigRules, ComputeInstancesShareTheirGpuInstance) {
  std::uint32_t owner = 0;
  std::uint32_t id = 99;
  ASSERT_EQ(create("4g.40gb", kNoId, &owner), MigResult::kDone);

  EXPECT_EQ(remaining_compute(*gpu_, owner, 1), 4U);
  EXPECT_EQ(create_compute_instance(*gpu_, owner, 2, kNoId, &id), MigResult::kDone);
  EXPECT_EQ(id, 0U);
  EXPECT_EQ(create_compute_instance(*gpu_, owner, 4, kNoId, &id), MigResult::kNoRoom);
  EXPECT_EQ(create_compute_instance(*gpu_, owner, 2, 1, &id), MigResult::kBadPlacement);
  EXPECT_EQ(create_compute_instance(*gpu_, owner, 1, 3, &id), MigResult::kDone);
  EXPECT_EQ(id, 1U);
  EXPECT_EQ(remaining_compute(*gpu_, owner, 1), 1U);
  EXPECT_FALSE(has_compute_profile(*profile_of(*gpu_, owner), 3));
  EXPECT_EQ(create_compute_instance(*gpu_, 9, 1, kNoId, &id), MigResult::kNotFound);
}

TEST_F(MigRules, NothingIsDestroyedUnderWork) {
  std::uint32_t owner = 0;
  std::uint32_t compute = 0;
  ASSERT_EQ(create("2g.20gb", kNoId, &owner), MigResult::kDone);
  ASSERT_EQ(create_compute_instance(*gpu_, owner, 2, kNoId, &compute), MigResult::kDone);
  const InstanceId id{owner, compute};
  gpu_->processes[0].instance = packed(id);
  gpu_->processes[0].pid = 4'194'303;  // it stays until it is cleared

  EXPECT_EQ(destroy_gpu_instance(*gpu_, owner), MigResult::kInUse);
  EXPECT_EQ(destroy_compute_instance(*gpu_, id), MigResult::kInUse);
  gpu_->processes[0].pid = 0;
  EXPECT_EQ(destroy_gpu_instance(*gpu_, owner), MigResult::kInUse) << "it has a compute instance";
  EXPECT_EQ(destroy_compute_instance(*gpu_, id), MigResult::kDone);
  EXPECT_EQ(destroy_compute_instance(*gpu_, id), MigResult::kNotFound);
  EXPECT_EQ(destroy_gpu_instance(*gpu_, owner), MigResult::kDone);
  EXPECT_EQ(destroy_gpu_instance(*gpu_, owner), MigResult::kNotFound);
}

TEST_F(MigRules, TenThousandCyclesLeaveNothing) {
  for (int i = 0; i < 10'000; ++i) {
    std::uint32_t owner = 0;
    std::uint32_t compute = 0;
    ASSERT_EQ(create(i % 2 == 0 ? "1g.10gb" : "3g.40gb", kNoId, &owner), MigResult::kDone);
    const std::uint32_t slices = profile_of(*gpu_, owner)->slices;
    ASSERT_EQ(create_compute_instance(*gpu_, owner, slices, kNoId, &compute), MigResult::kDone);
    ASSERT_EQ(destroy_compute_instance(*gpu_, {owner, compute}), MigResult::kDone);
    ASSERT_EQ(destroy_gpu_instance(*gpu_, owner), MigResult::kDone);
  }
  EXPECT_FALSE(has_instances(*gpu_));
  EXPECT_EQ(left("1g.10gb"), 7U);
}

TEST_F(MigRules, AResetTakesAllInstancesAndBringsThePendingMode) {
  ASSERT_EQ(create("7g.80gb"), MigResult::kDone);
  EXPECT_EQ(set_mig_mode(*gpu_, false, false), MigResult::kInUse);
  EXPECT_TRUE(is_mig_on(*gpu_));

  reset_mig(*gpu_);

  EXPECT_FALSE(is_mig_on(*gpu_));
  gpu_->mig_mode = static_cast<std::uint32_t>(Support::kOn);
  EXPECT_FALSE(has_instances(*gpu_));
}

TEST_F(MigRules, AnA30HasFourSlicesAndOneSetOfMediaEngines) {
  use("a30-x4");
  EXPECT_EQ(left("1g.6gb"), 4U);
  std::uint32_t id = 99;

  EXPECT_EQ(create("2g.12gb+me", 2, &id), MigResult::kDone);
  EXPECT_EQ(id, 2U);
  EXPECT_EQ(create("1g.6gb+me"), MigResult::kNoRoom);
  EXPECT_EQ(create("1g.6gb", 1, &id), MigResult::kDone);
  EXPECT_EQ(id, 4U);
  EXPECT_EQ(create("2g.12gb"), MigResult::kNoRoom);
  EXPECT_EQ(left("1g.6gb"), 1U);
}

// Every board's table: the largest profile takes the whole GPU, and starts lie within it.
TEST_F(MigRules, EveryBoardHasAWholeTable) {
  for (const char* board : {"dgx-a100", "a100-pcie-x4", "dgx-h100", "h100-nvl-x4", "hgx-h200",
                            "h200-single", "b200", "a30-x4"}) {
    use(board);
    const MigProfile& whole = gpu_->mig_profiles[mig_profile_count(*gpu_) - 1];
    EXPECT_EQ(whole.slices, compute_slices_of(*gpu_)) << board;
    EXPECT_EQ(whole.memory_slices, memory_slices_of(*gpu_)) << board;
    for (std::uint32_t i = 0; i < mig_profile_count(*gpu_); ++i) {
      const MigProfile& profile = gpu_->mig_profiles[i];
      EXPECT_EQ(remaining_instances(*gpu_, profile), profile.instances)
          << board << " " << profile.name;
      for (std::uint32_t start = 0; start < 32; ++start) {
        if ((profile.starts >> start & 1) == 0) continue;
        EXPECT_LE(start + profile.memory_slices, whole.memory_slices)
            << board << " " << profile.name;
      }
    }
  }
}

TEST_F(MigRules, ABoardFileBeginsWithItsLayout) {
  std::ifstream in(BOARDS_DIR "/a30-x4.yaml");
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const std::string off = "    mig: off\n";
  const auto with = [&](const std::string& layout) {
    std::string changed = text;
    changed.replace(text.find(off), off.size(), "    mig: on\n    mig_layout: " + layout + "\n");
    return parse_board(changed, "a30-x4.yaml");
  };
  char path[] = "/tmp/mig_rules.XXXXXX";
  const std::string root = mkdtemp(path);

  const auto board = with("[2g.12gb@2, 1g.6gb]");
  ASSERT_TRUE(board) << board.error().message;
  ASSERT_TRUE(create_node(*board, "n1", root + "/n1"));
  const auto file = StateFile::open(root + "/n1/state", StateFile::Access::kRead);
  ASSERT_TRUE(file);
  EXPECT_NE(compute_slices_of(file->state().gpus[3], {2, 0}), 0U);
  EXPECT_TRUE(std::filesystem::exists(
      root + "/n1/proc/driver/nvidia/capabilities/gpu3/mig/gi2/ci0/access"));
  EXPECT_FALSE(with("[3g.20gb]")) << "an A30 has none such";
  const auto full = with("[4g.24gb, 1g.6gb]");
  ASSERT_TRUE(full);
  EXPECT_FALSE(create_node(*full, "n2", root + "/n2")) << "there is no place";
  std::filesystem::remove_all(root);
}

TEST_F(MigRules, UuidsFollowFromTheGpuAndTheIds) {
  std::set<std::string> uuids;
  for (std::uint32_t i = 0; i < kMaxGpuInstances; ++i) {
    for (std::uint32_t k = 0; k < kMaxComputeInstances; ++k) {
      char uuid[kMigUuidBytes];
      char again[kMigUuidBytes];
      write_mig_uuid(*gpu_, {i, k}, uuid);
      write_mig_uuid(*gpu_, {i, k}, again);
      EXPECT_STREQ(uuid, again);
      EXPECT_EQ(std::strlen(uuid), 40U);
      uuids.insert(uuid);
    }
  }
  EXPECT_EQ(uuids.size(), std::size_t{kMaxGpuInstances} * kMaxComputeInstances);
}

TEST_F(MigRules, MinorNumbersAreThoseOfTheDriver) {
  EXPECT_EQ(capability_minor(0, {0, kNoId}), 3U);
  EXPECT_EQ(capability_minor(0, {0, 0}), 4U);
  EXPECT_EQ(capability_minor(0, {1, kNoId}), 12U);
  EXPECT_EQ(capability_minor(0, {1, 0}), 13U);
  EXPECT_EQ(capability_minor(1, {0, kNoId}), 138U);
}

}  // namespace
}  // namespace gpu_emulator
