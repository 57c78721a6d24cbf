#include "scheduling/placement/best_subset.h"

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace gpu_platform::scheduling {

namespace {

std::uint32_t lowest_of(GpuMask gpus) {
  return static_cast<std::uint32_t>(std::countr_zero(gpus));
}

GpuMask bit_of(std::uint32_t gpu) {
  return GpuMask{1} << gpu;
}

// Returns whether a set of `of` has at most kMaxSubsets subsets of `count`.
bool is_countable(std::uint32_t of, std::uint32_t count) {
  count = std::min(count, of - count);
  std::uint64_t subsets = 1;
  for (std::uint32_t i = 1; i <= count; ++i) {
    subsets = subsets * (of - count + i) / i;  // exact: a binomial coefficient after each step
    if (subsets > SubsetChooser::kMaxSubsets) return false;
  }
  return true;
}

// The pairs inside a set that grows.
struct Pairs {
  std::uint32_t worst = std::numeric_limits<Nearness>::max();
  std::uint32_t sum = 0;
};

// Smaller is better; in the order of the header.
struct Closeness {
  bool lacks_nvlink = false;
  std::uint32_t sockets = 0;
  std::uint32_t numa_nodes = 0;
  std::uint32_t farness = 0;  // of the worst link
  std::uint32_t sum = 0;      // from the top, so that smaller is better

  friend auto operator<=>(const Closeness&, const Closeness&) = default;
};

// Larger is better.
struct Leftover {
  std::uint32_t numa_nodes = 0;
  std::uint32_t sockets = 0;
  std::uint32_t links = 0;

  friend auto operator<=>(const Leftover&, const Leftover&) = default;
};

// The search in one domain after another of one kind, keeping the best subset so far.
class SubsetSearch {
 public:
  SubsetSearch(const GpuLayout& layout, GpuMask eligible, std::uint32_t count)
      : layout_(layout), eligible_(eligible), count_(count) {}

  // Looks at the eligible GPUs of a domain; does nothing if there are too few.
  void visit(GpuMask domain) {
    const GpuMask members = domain & eligible_;
    if (size_of(members) < count_) return;
    if (is_countable(size_of(members), count_)) {
      extend(0, members, {});
      return;
    }
    for (GpuMask seeds = members; seeds != 0; seeds &= seeds - 1) {
      grow_from(lowest_of(seeds), members);
    }
  }

  bool has_found() const { return best_ != 0; }
  GpuMask best() const { return best_; }
  bool lacks_nvlink() const { return best_closeness_.lacks_nvlink; }

 private:
  Nearness nearness(std::uint32_t a, std::uint32_t b) const {
    return layout_.nearness[std::size_t{a} * layout_.gpus + b];
  }

  Pairs with(Pairs pairs, GpuMask taken, std::uint32_t gpu) const {
    for (; taken != 0; taken &= taken - 1) {
      const std::uint32_t link = nearness(gpu, lowest_of(taken));
      pairs.worst = std::min(pairs.worst, link);
      pairs.sum += link;
    }
    return pairs;
  }

  // Tries every way to add GPUs of `rest` to `taken`, lowest indices first.
  void extend(GpuMask taken, GpuMask rest, const Pairs& pairs) {
    const std::uint32_t missing = count_ - size_of(taken);
    if (missing == 0) {
      consider(taken, pairs);
      return;
    }
    for (; size_of(rest) >= missing; rest &= rest - 1) {
      const std::uint32_t gpu = lowest_of(rest);
      extend(taken | bit_of(gpu), rest & (rest - 1), with(pairs, taken, gpu));
    }
  }

  void grow_from(std::uint32_t seed, GpuMask members) {
    GpuMask taken = bit_of(seed);
    Pairs pairs;
    while (size_of(taken) < count_) {
      const std::uint32_t next = next_of(taken, members & ~taken);
      pairs = with(pairs, taken, next);
      taken |= bit_of(next);
    }
    consider(taken, pairs);
  }

  // Returns the GPU of `rest` that improves `taken` most.
  std::uint32_t next_of(GpuMask taken, GpuMask rest) const {
    const auto domain_with = [](const std::vector<GpuMask>& domains, std::uint32_t gpu) {
      return *std::ranges::find_if(domains, [&](GpuMask d) { return (d & bit_of(gpu)) != 0; });
    };
    using Key = std::tuple<bool, bool, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
    std::optional<Key> best;
    for (; rest != 0; rest &= rest - 1) {
      const std::uint32_t gpu = lowest_of(rest);
      const GpuMask numa = domain_with(layout_.domains.numa, gpu);
      const bool adds_numa = (numa & taken) == 0;
      const bool adds_socket = (domain_with(layout_.domains.sockets, gpu) & taken) == 0;
      const Pairs pairs = with({}, taken, gpu);
      const Key key{adds_socket,  adds_numa,  adds_numa ? ~size_of(numa & eligible_) : 0,
                    ~pairs.worst, ~pairs.sum, gpu};
      if (!best.has_value() || key < *best) best = key;
    }
    return std::get<5>(*best);
  }

  // Among equal sets the one with the lowest indices stays.
  void consider(GpuMask taken, const Pairs& pairs) {
    const Closeness closeness{
        .lacks_nvlink = pairs.worst < kNvLinkNearness,
        .sockets = touched_by(layout_.domains.sockets, taken),
        .numa_nodes = touched_by(layout_.domains.numa, taken),
        .farness = ~pairs.worst,
        .sum = ~pairs.sum,
    };
    if (has_found()) {
      const auto order = closeness <=> best_closeness_;
      if (order > 0) return;
      if (order == 0 && !leaves_better(taken)) return;
    }
    best_ = taken;
    best_closeness_ = closeness;
    best_leftover_.reset();
  }

  bool leaves_better(GpuMask taken) {
    if (!best_leftover_.has_value()) best_leftover_ = leftover_of(best_);
    const auto order = leftover_of(taken) <=> *best_leftover_;
    if (order != 0) return order > 0;
    const GpuMask differing = taken ^ best_;
    return (taken & differing & (~differing + 1)) != 0;
  }

  Leftover leftover_of(GpuMask taken) const {
    const GpuMask left = eligible_ & ~taken;
    const auto squares = [left](const std::vector<GpuMask>& domains) {
      std::uint32_t sum = 0;
      for (const GpuMask domain : domains) sum += size_of(domain & left) * size_of(domain & left);
      return sum;
    };
    Pairs pairs;
    for (GpuMask rest = left; rest != 0; rest &= rest - 1) {
      pairs = with(pairs, rest & (rest - 1), lowest_of(rest));
    }
    return {squares(layout_.domains.numa), squares(layout_.domains.sockets), pairs.sum};
  }

  const GpuLayout& layout_;
  const GpuMask eligible_;
  const std::uint32_t count_;
  GpuMask best_ = 0;
  Closeness best_closeness_;
  std::optional<Leftover> best_leftover_;  // where it was needed
};

constexpr std::uint32_t kSmall = 8;

}  // namespace

bool Reach::holds(PlacementRank rank, std::uint32_t gpus) const {
  switch (rank) {
    case PlacementRank::kNvLink:
      return gpus <= nvlink;
    case PlacementRank::kNumaNode:
      return gpus <= numa_node;
    case PlacementRank::kSocket:
      return gpus <= socket;
    case PlacementRank::kAcrossSockets:
      return true;
  }
  CHECK(false);
  std::unreachable();
}

void Reach::raise_to(const Reach& other) {
  nvlink = std::max(nvlink, other.nvlink);
  numa_node = std::max(numa_node, other.numa_node);
  socket = std::max(socket, other.socket);
}

SubsetChooser::SubsetChooser(GpuLayout layout) : layout_(std::move(layout)) {
  const std::uint32_t gpus = layout_.gpus;
  CHECK(gpus <= kMaxGpusPerNode && layout_.nearness.size() == std::size_t{gpus} * gpus);
  nvlinked_.resize(gpus);
  for (std::uint32_t a = 0; a < gpus; ++a) {
    for (std::uint32_t b = 0; b < gpus; ++b) {
      const bool is_linked = layout_.nearness[std::size_t{a} * gpus + b] >= kNvLinkNearness;
      if (a != b && is_linked) nvlinked_[a] |= bit_of(b);
    }
  }
  const GpuMask all = gpus == 0 ? 0 : ~GpuMask{0} >> (kMaxGpusPerNode - gpus);
  has_rank_ = {reach(all).nvlink > 1, max_in_one(layout_.domains.numa, all) > 1,
               layout_.domains.sockets.size() < layout_.domains.numa.size(),
               layout_.domains.sockets.size() > 1};
}

Subset SubsetChooser::best(GpuMask eligible, std::uint32_t count) const {
  CHECK(count > 0 && size_of(eligible) >= count);
  SubsetSearch on_numa_node(layout_, eligible, count);
  for (const GpuMask domain : layout_.domains.numa) on_numa_node.visit(domain);
  if (on_numa_node.has_found()) {
    return {on_numa_node.best(),
            on_numa_node.lacks_nvlink() ? PlacementRank::kNumaNode : PlacementRank::kNvLink};
  }
  SubsetSearch on_socket(layout_, eligible, count);
  for (const GpuMask domain : layout_.domains.sockets) on_socket.visit(domain);
  if (on_socket.has_found()) return {on_socket.best(), PlacementRank::kSocket};
  SubsetSearch anywhere(layout_, eligible, count);
  anywhere.visit(eligible);
  return {anywhere.best(), PlacementRank::kAcrossSockets};
}

// kNvLink: no set of n GPUs has NVLink between all unless n of them have it to n - 1 others.
Reach SubsetChooser::reach(GpuMask eligible) const {
  Reach reach;
  reach.numa_node = static_cast<std::uint8_t>(max_in_one(layout_.domains.numa, eligible));
  reach.socket = static_cast<std::uint8_t>(max_in_one(layout_.domains.sockets, eligible));
  for (const GpuMask domain : layout_.domains.numa) {
    const GpuMask members = domain & eligible;
    std::array<std::uint8_t, kMaxGpusPerNode + 1> with_so_many = {};  // by GPUs linked, itself too
    for (GpuMask rest = members; rest != 0; rest &= rest - 1) {
      ++with_so_many[1 + size_of(nvlinked_[lowest_of(rest)] & members)];
    }
    std::uint32_t gpus = 0;
    for (std::uint32_t n = size_of(members); n > reach.nvlink; --n) {
      gpus += with_so_many[n];
      if (gpus >= n) reach.nvlink = static_cast<std::uint8_t>(n);
    }
  }
  return reach;
}

model::PlacementLevel SubsetChooser::level_of(const Subset& subset) const {
  if (subset.gpus == 0) return model::PlacementLevel::kUnknown;
  switch (subset.rank) {
    case PlacementRank::kNvLink:
    case PlacementRank::kNumaNode:
      return (subset.gpus & layout_.domains.untold) != 0 ? model::PlacementLevel::kUnknown
                                                         : model::PlacementLevel::kOneNumaNode;
    case PlacementRank::kSocket:
      return model::PlacementLevel::kOneSocket;
    case PlacementRank::kAcrossSockets:
      return model::PlacementLevel::kAcrossSockets;
  }
  CHECK(false);
  std::unreachable();
}

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
