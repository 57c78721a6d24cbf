#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduling/placement/best_subset.h"

namespace gpu_platform::scheduling {

// The best subsets of one layout, each worked out on first use and looked up ever after. A cache
// that changes no result, so it is part of no hash and no comparison.
//
// Memory: nothing before the first use, then a fixed number of entries: all there are on nodes of
// up to 8 GPUs (49 KiB), kSlots beyond (192 KiB), where a newer entry takes the place of an older
// one. Thread: one owner; looking up writes.
class SubsetTable {
 public:
  explicit SubsetTable(GpuLayout layout);

  const SubsetChooser& chooser() const { return chooser_; }
  // As SubsetChooser::best.
  Subset best(GpuMask eligible, std::uint32_t count) const;
  // As SubsetChooser::reach; looked up on nodes of up to 8 GPUs.
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
