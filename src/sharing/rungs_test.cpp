#include "sharing/rungs.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <vector>

namespace gpu_platform::sharing {
namespace {

using model::Rung;
using model::ShareMode;

constexpr Rung kNothing = Rung::kAdvisory;
constexpr NodeMeans kAll{.watches_memory = true, .limits_memory = true, .freezes = true};
constexpr NodeMeans kToday{.watches_memory = true, .limits_memory = false, .freezes = true};

// A job as it may behave.
struct Kind {
  const char* name;
  JobMeans means;
};
constexpr Kind kKinds[] = {
    {"1 process", {.has_one_process = true}},
    {"8 processes", {}},
    {"container in its cgroup", {}},
    {"container in a cgroup of the engine", {.is_in_cgroup = false}},
    {"container without the server's folder", {.is_mps_client = false}},
    {"exec beside its first process", {}},
    {"static binary", {.has_one_process = true}},
    {"MPS client", {.has_one_process = true}},
    {"not an MPS client", {.is_mps_client = false, .has_one_process = true}},
    {"processes of root", {.is_of_root = true}},
};

struct Row {
  ShareMode mode;
  const char* kind;
  Rung memory;
  Rung compute;
  bool is_per_process = false;
};
// On a node as they are today.
constexpr Row kTable[] = {
    {ShareMode::kNone, "1 process", Rung::kHardware, Rung::kHardware},
    {ShareMode::kNone, "8 processes", Rung::kHardware, Rung::kHardware},
    {ShareMode::kNone, "container in its cgroup", Rung::kHardware, Rung::kHardware},
    {ShareMode::kNone, "container in a cgroup of the engine", Rung::kHardware, Rung::kHardware},
    {ShareMode::kNone, "container without the server's folder", Rung::kHardware, Rung::kHardware},
    {ShareMode::kNone, "exec beside its first process", Rung::kHardware, Rung::kHardware},
    {ShareMode::kNone, "static binary", Rung::kHardware, Rung::kHardware},
    {ShareMode::kNone, "MPS client", Rung::kHardware, Rung::kHardware},
    {ShareMode::kNone, "not an MPS client", Rung::kHardware, Rung::kHardware},
    {ShareMode::kNone, "processes of root", Rung::kHardware, Rung::kHardware},
    {ShareMode::kTimeSlice, "1 process", Rung::kWatchdog, Rung::kFrozen},
    {ShareMode::kTimeSlice, "8 processes", Rung::kWatchdog, Rung::kFrozen},
    {ShareMode::kTimeSlice, "container in its cgroup", Rung::kWatchdog, Rung::kFrozen},
    {ShareMode::kTimeSlice, "container in a cgroup of the engine", kNothing, kNothing},
    {ShareMode::kTimeSlice, "container without the server's folder", Rung::kWatchdog,
     Rung::kFrozen},
    {ShareMode::kTimeSlice, "exec beside its first process", Rung::kWatchdog, Rung::kFrozen},
    {ShareMode::kTimeSlice, "static binary", Rung::kWatchdog, Rung::kFrozen},
    {ShareMode::kTimeSlice, "MPS client", Rung::kWatchdog, Rung::kFrozen},
    {ShareMode::kTimeSlice, "not an MPS client", Rung::kWatchdog, Rung::kFrozen},
    {ShareMode::kTimeSlice, "processes of root", kNothing, kNothing},
    {ShareMode::kMps, "1 process", Rung::kMpsLimit, Rung::kMpsLimit},
    {ShareMode::kMps, "8 processes", Rung::kWatchdog, Rung::kMpsLimit, true},
    {ShareMode::kMps, "container in its cgroup", Rung::kWatchdog, Rung::kMpsLimit, true},
    {ShareMode::kMps, "container in a cgroup of the engine", kNothing, Rung::kMpsLimit, true},
    {ShareMode::kMps, "container without the server's folder", Rung::kWatchdog, kNothing},
    {ShareMode::kMps, "exec beside its first process", Rung::kWatchdog, Rung::kMpsLimit, true},
    {ShareMode::kMps, "static binary", Rung::kMpsLimit, Rung::kMpsLimit},
    {ShareMode::kMps, "MPS client", Rung::kMpsLimit, Rung::kMpsLimit},
    {ShareMode::kMps, "not an MPS client", Rung::kWatchdog, kNothing},
    {ShareMode::kMps, "processes of root", kNothing, Rung::kMpsLimit, true},
};

const JobMeans& means_of(std::string_view kind) {
  for (const Kind& each : kKinds) {
    if (each.name == kind) return each.means;
  }
  ADD_FAILURE() << kind;
  return kKinds[0].means;
}

TEST(Rungs, AreThoseOfTheTable) {
  std::set<std::pair<ShareMode, std::string>> seen;
  for (const Row& row : kTable) {
    const InForce in_force = wall_in_force(row.mode, kToday, means_of(row.kind));
    EXPECT_EQ(in_force, (InForce{{row.memory, row.compute}, row.is_per_process}))
        << to_string(row.mode) << ", " << row.kind << ": " << to_string(in_force.wall.memory)
        << ", " << to_string(in_force.wall.compute);
    seen.emplace(row.mode, row.kind);
  }
  EXPECT_EQ(seen.size(), model::kShareModes * std::size(kKinds)) << "each mode with each kind";
}

std::vector<NodeMeans> all_nodes() {
  std::vector<NodeMeans> nodes;
  for (unsigned bits = 0; bits < 8; ++bits) {
    nodes.push_back({(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
  }
  return nodes;
}

// What a grant says is decided before anything is known of the job's processes.
TEST(Rungs, AGrantPromisesNoMoreThanAnyJobGets) {
  for (const ShareMode mode : {ShareMode::kNone, ShareMode::kTimeSlice, ShareMode::kMps}) {
    for (const NodeMeans& node : all_nodes()) {
      for (const Kind& kind : kKinds) {
        // A program that leaves the server means to: the rung's own words say so.
        if (mode == ShareMode::kMps && !kind.means.is_mps_client) continue;
        const InForce promised =
            promised_wall(mode, node, {kind.means.is_in_cgroup, kind.means.is_of_root});
        const InForce real = wall_in_force(mode, node, kind.means);
        EXPECT_LE(promised.wall.memory, real.wall.memory) << to_string(mode) << ", " << kind.name;
        EXPECT_LE(promised.wall.compute, real.wall.compute) << to_string(mode) << ", " << kind.name;
        EXPECT_GE(promised.is_compute_per_process, real.is_compute_per_process) << kind.name;
      }
    }
  }
}

TEST(Rungs, WithoutAMechanismThereIsNoWall) {
  for (const Kind& kind : kKinds) {
    EXPECT_EQ(wall_in_force(ShareMode::kTimeSlice, {}, kind.means), (InForce{{kNothing, kNothing}}))
        << kind.name;
    EXPECT_EQ(promised_wall(ShareMode::kMps, {}).wall.memory, kNothing);
  }
}

TEST(Rungs, ADriversLimitOfACgroupHoldsWhatIsInTheCgroup) {
  EXPECT_EQ(promised_wall(ShareMode::kTimeSlice, kAll).wall.memory, Rung::kDriverLimit);
  EXPECT_EQ(promised_wall(ShareMode::kTimeSlice, kAll, {.is_in_cgroup = false}).wall.memory,
            kNothing);
  EXPECT_EQ(promised_wall(ShareMode::kTimeSlice, kAll, {.is_of_root = true}).wall.memory, kNothing)
      << "it can leave the cgroup";
  EXPECT_EQ(promised_wall(ShareMode::kMps, kAll).wall.memory, Rung::kWatchdog)
      << "a server allocates for its clients";
}

TEST(Rungs, OfMemoryAreNoneOfComputeAndTheOtherWayRound) {
  for (const ShareMode mode : {ShareMode::kNone, ShareMode::kTimeSlice, ShareMode::kMps}) {
    for (const NodeMeans& node : all_nodes()) {
      for (const Kind& kind : kKinds) {
        const model::Wall wall = wall_in_force(mode, node, kind.means).wall;
        EXPECT_NE(wall.memory, Rung::kFrozen);
        EXPECT_NE(wall.compute, Rung::kDriverLimit);
        EXPECT_NE(wall.compute, Rung::kWatchdog);
      }
    }
  }
}

}  // namespace
}  // namespace gpu_platform::sharing
