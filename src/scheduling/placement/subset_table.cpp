#include "scheduling/placement/subset_table.h"

#include <bit>
#include <utility>

#include "base/check.h"

namespace gpu_platform::scheduling {

namespace {

constexpr std::uint32_t kSmall = 8;

}  // namespace

SubsetTable::SubsetTable(GpuLayout layout)
    : chooser_(std::move(layout)), is_small_(chooser_.layout().gpus <= kSmall) {}

SubsetTable::Entry& SubsetTable::entry_of(GpuMask eligible, std::uint32_t count) const {
  if (is_small_) {
    CHECK(eligible < (GpuMask{1} << kSmall) && count > 0 && count <= kSmall);
    if (entries_.empty()) entries_.resize(std::size_t{1} << kSmall << 3);
    return entries_[static_cast<std::size_t>(eligible << 3) | (count - 1)];
  }
  if (entries_.empty()) entries_.resize(kSlots);
  // Fibonacci hashing: the top bits of a product with 2^64 / φ depend on all bits of the key.
  const std::uint64_t mixed =
      (eligible ^ std::rotl(std::uint64_t{count}, 57)) * std::uint64_t{0x9E37'79B9'7F4A'7C15};
  return entries_[static_cast<std::size_t>(mixed >> (64 - std::countr_zero(kSlots)))];
}

Subset SubsetTable::best(GpuMask eligible, std::uint32_t count) const {
  Entry& entry = entry_of(eligible, count);
  if (entry.count != count || entry.eligible != eligible) {
    const Subset subset = chooser_.best(eligible, count);
    entry = {eligible, subset.gpus, static_cast<std::uint8_t>(count), subset.rank};
  }
  return {entry.gpus, entry.rank};
}

Reach SubsetTable::reach(GpuMask eligible) const {
  if (!is_small_) return chooser_.reach(eligible);
  if (reaches_.empty()) reaches_.resize(std::size_t{1} << kSmall);
  std::optional<Reach>& entry = reaches_.at(static_cast<std::size_t>(eligible));
  if (!entry.has_value()) entry = chooser_.reach(eligible);
  return *entry;
}

}  // namespace gpu_platform::scheduling
