#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "model/allocation.h"
#include "scheduling/gpu_layout.h"

namespace gpu_platform::scheduling {

// The quality of a set of GPUs for one job, best first. Placement follows this order.
enum class PlacementRank : std::uint8_t {
  kNvLink,         // on one NUMA node, NVLink between all of them; so is a single GPU, or none
  kNumaNode,       // on one NUMA node
  kSocket,         // on one socket
  kAcrossSockets,  // wherever they are on the node
};
inline constexpr PlacementRank kAllRanks[] = {PlacementRank::kNvLink, PlacementRank::kNumaNode,
                                              PlacementRank::kSocket,
                                              PlacementRank::kAcrossSockets};

struct Subset {
  GpuMask gpus = 0;
  PlacementRank rank = PlacementRank::kNvLink;

  friend bool operator==(const Subset&, const Subset&) = default;
};

// Upper bounds of how many GPUs can be had at a rank or better. Exact but for kNvLink, where it is
// exact when "has NVLink to" is transitive inside a NUMA node, as on real boards.
struct Reach {
  std::uint8_t nvlink = 0;
  std::uint8_t numa_node = 0;
  std::uint8_t socket = 0;

  bool holds(PlacementRank rank, std::uint32_t gpus) const;
  void raise_to(const Reach& other);  // the larger of each

  friend bool operator==(const Reach&, const Reach&) = default;
};

// Chooses GPUs on nodes of one layout. Pure: the same set and count always give the same GPUs.
//
// The best subset is the first in this order, each item deciding only where all before it tie:
//   1. rank as above, where only the domain counts: NUMA node, socket, across sockets;
//   2. NVLink between all of them before any other;
//   3. fewest sockets, then fewest NUMA nodes;
//   4. nearest worst link: the largest min over its pairs of nearness;
//   5. the largest sum over its pairs of nearness;
//   6. what it leaves: the largest sum over NUMA nodes of (eligible GPUs left there)², then the
//   same
//      over sockets, then the largest sum of nearness over pairs of GPUs left, so that it breaks up
//      as little as it can;
//   7. the lowest indices.
// Exact where a domain has at most kMaxSubsets subsets of the size asked for, which holds for
// every node of up to 16 GPUs. Beyond that it is a heuristic: from each GPU of the domain a subset
// grows by the GPU that adds no socket, else no NUMA node, else the NUMA node with the most
// eligible GPUs, then by nearest worst link, sum of links and index; the best of these by the order
// above is taken. Items 1 and the bound of a rank by its domain hold there too.
//
// Cost: up to 3 ms for 8 of 16 GPUs, 10 µs for 4 of 8; see SubsetTable.
class SubsetChooser {
 public:
  static constexpr std::uint64_t kMaxSubsets = 12'870;  // 8 of 16

  explicit SubsetChooser(GpuLayout layout);

  const GpuLayout& layout() const { return layout_; }
  // Returns `count` of `eligible`. 1 <= count <= popcount(eligible); bits from layout().gpus on are
  // clear.
  Subset best(GpuMask eligible, std::uint32_t count) const;
  Reach reach(GpuMask eligible) const;
  // Returns false if no subset of two or more GPUs has this rank, so that it need not be searched
  // for.
  bool has_rank(PlacementRank rank) const { return has_rank_[static_cast<std::size_t>(rank)]; }
  // Returns what the allocation records about a subset. kUnknown: the node does not tell where its
  // GPUs are.
  model::PlacementLevel level_of(const Subset& subset) const;

 private:
  GpuLayout layout_;
  std::vector<GpuMask> nvlinked_;  // by GPU, the GPUs that it has NVLink to
  std::array<bool, std::size(kAllRanks)> has_rank_ = {};
};

// The best subsets of one layout, each computed on first use and looked up afterwards. It is a
// cache that changes no result, so it is part of no hash and no comparison.
//
// Memory: nothing before the first use, then a fixed number of entries. Nodes of up to 8 GPUs have
// all of them (49 KiB). Larger nodes have kSlots (192 KiB), where a newer entry replaces an older
// one. Thread: one owner; looking up writes.
class SubsetTable {
 public:
  explicit SubsetTable(GpuLayout layout);

  const SubsetChooser& chooser() const { return chooser_; }
  // Does what SubsetChooser::best does.
  Subset best(GpuMask eligible, std::uint32_t count) const;
  // Does what SubsetChooser::reach does; on nodes of up to 8 GPUs the answer is looked up.
  Reach reach(GpuMask eligible) const;

 private:
  static constexpr std::size_t kSlots = 8192;
  struct Entry {
    GpuMask eligible = 0;
    GpuMask gpus = 0;
    std::uint8_t count = 0;  // 0: empty
    PlacementRank rank = PlacementRank::kNvLink;
  };

  Entry& entry_of(GpuMask eligible, std::uint32_t count) const;

  SubsetChooser chooser_;
  bool is_small_ = false;  // every set and count has an entry of its own
  mutable std::vector<Entry> entries_;
  mutable std::vector<std::optional<Reach>> reaches_;  // by set, where it is small
};

}  // namespace gpu_platform::scheduling
