#include "scheduling/gpu_layout.h"

#include <algorithm>
#include <bit>

namespace gpu_platform::scheduling {

namespace {

// Returns the domain of `key` and adds it if it is new.
template <class Key>
GpuMask& domain_of(const Key& key, std::vector<Key>& keys, std::vector<GpuMask>& domains) {
  const auto known = std::ranges::find(keys, key);
  if (known != keys.end()) return domains[static_cast<std::size_t>(known - keys.begin())];
  keys.push_back(key);
  return domains.emplace_back(0);
}

}  // namespace

Nearness nearness_of(const model::GpuLink& link) {
  const auto kind = static_cast<std::uint32_t>(link.kind);
  if (link.kind != model::LinkKind::kNvLink) return static_cast<Nearness>(kind);
  constexpr std::uint32_t kMax = 200;  // far more than a GPU has
  return static_cast<Nearness>(kind + std::min(link.nvlinks, kMax));
}

void DomainCollector::clear() {
  domains_.numa.clear();
  domains_.sockets.clear();
  domains_.untold = 0;
  numa_nodes_.clear();
  sockets_.clear();
}

void DomainCollector::add(std::size_t gpu, std::int32_t numa_node, std::int32_t socket) {
  if (gpu >= kMaxGpusPerNode) return;
  const GpuMask bit = GpuMask{1} << gpu;
  numa_node = std::max(numa_node, -1);
  const bool is_told = numa_node >= 0 && socket >= 0;
  const std::pair place{is_told ? socket : -1, is_told ? -1 : numa_node};
  domain_of(numa_node, numa_nodes_, domains_.numa) |= bit;
  domain_of(place, sockets_, domains_.sockets) |= bit;
  if (numa_node < 0) domains_.untold |= bit;
}

std::uint32_t max_in_one(const std::vector<GpuMask>& domains, GpuMask gpus) {
  int most = 0;
  for (const GpuMask domain : domains) most = std::max(most, std::popcount(domain & gpus));
  return static_cast<std::uint32_t>(most);
}

std::uint32_t touched_by(const std::vector<GpuMask>& domains, GpuMask gpus) {
  std::uint32_t touched = 0;
  for (const GpuMask domain : domains) touched += (domain & gpus) != 0 ? 1 : 0;
  return touched;
}

}  // namespace gpu_platform::scheduling
