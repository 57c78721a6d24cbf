#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/topology.h"

// The positions of a node's GPUs to each other, as placement sees them. These values have no owner
// and no thread.

namespace gpu_platform::scheduling {

// A GPU type's number within one cluster.
using TypeIndex = std::uint32_t;

// Bit i is the GPU of index i within the node.
using GpuMask = std::uint64_t;

// What is kept of a node from a request.
struct Withheld {
  GpuMask gpus = 0;
  bool whole_node = false;  // its CPUs and memory, too
};

inline std::uint32_t size_of(GpuMask gpus) {
  return static_cast<std::uint32_t>(std::popcount(gpus));
}

// No server holds more; GPUs of a higher index are never handed out.
inline constexpr std::size_t kMaxGpusPerNode = 64;

// The nearness of two GPUs; the larger, the nearer. It is the order of model::is_farther as a
// number. From kNvLink on it counts the links: NV18 is kNvLinkNearness + 18.
using Nearness = std::uint8_t;
inline constexpr auto kNvLinkNearness = static_cast<Nearness>(model::LinkKind::kNvLink);
Nearness nearness_of(const model::GpuLink& link);

// The GPUs of each NUMA node and of each socket. GPUs whose NUMA node is not known count as one
// NUMA node; a NUMA node whose socket is not known counts as a socket of its own.
struct GpuDomains {
  std::vector<GpuMask> numa;     // ascending lowest GPU; disjoint, together all
  std::vector<GpuMask> sockets;  // in the same order; each holds whole NUMA nodes
  GpuMask untold = 0;            // GPUs without a known NUMA node

  friend auto operator<=>(const GpuDomains&, const GpuDomains&) = default;
};

// Collects domains from the GPUs of a node in ascending order. Keeps its storage between nodes.
class DomainCollector {
 public:
  void clear();
  // Negative numbers mean not known. GPUs from kMaxGpusPerNode on are passed over.
  void add(std::size_t gpu, std::int32_t numa_node, std::int32_t socket);
  const GpuDomains& domains() const { return domains_; }

 private:
  GpuDomains domains_;
  std::vector<std::int32_t> numa_nodes_;                        // of domains_.numa
  std::vector<std::pair<std::int32_t, std::int32_t>> sockets_;  // socket and NUMA node, one is -1
};

// Returns the most of `gpus` that lie in one of `domains`.
std::uint32_t max_in_one(const std::vector<GpuMask>& domains, GpuMask gpus);
// Returns how many of `domains` the GPUs touch.
std::uint32_t touched_by(const std::vector<GpuMask>& domains, GpuMask gpus);

struct GpuLayout {
  std::uint32_t gpus = 0;  // at most kMaxGpusPerNode
  GpuDomains domains;
  std::vector<Nearness> nearness;  // of GPUs a and b at a × gpus + b, both ways

  friend auto operator<=>(const GpuLayout&, const GpuLayout&) = default;
};

}  // namespace gpu_platform::scheduling
