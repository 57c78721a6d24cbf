#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

// The positions of a node's GPUs, CPUs and memory to each other. Fixed while the node is up.

namespace gpu_platform::model {

// The connection between two GPUs, from far to near; the words are those of `nvidia-smi topo -m`.
enum class LinkKind : std::uint8_t {
  kUnknown,
  kSystem,      // "SYS": another NUMA node or socket
  kNode,        // "NODE": host bridges of one NUMA node
  kHostBridge,  // "PHB": a host bridge
  kPxb,         // "PXB": several PCIe switches
  kPix,         // "PIX": one PCIe switch
  kNvLink,      // "NV<number of links>"
};
inline constexpr std::size_t kLinkKinds = 7;

struct GpuLink {
  LinkKind kind = LinkKind::kUnknown;
  std::uint32_t nvlinks = 0;         // of kNvLink; through switches, those that both ends have
  std::uint32_t nvlink_version = 0;  // the driver's number; 0: not known

  friend bool operator==(const GpuLink&, const GpuLink&) = default;
};

std::string to_string(const GpuLink& link);  // "NV18", "PIX", "SYS", "?"
// Returns whether `a` is the slower way: by kind, then by the number of NVLinks.
bool is_farther(const GpuLink& a, const GpuLink& b);

struct NumaNode {
  std::uint32_t id = 0;
  std::int32_t socket = -1;  // -1: not known
  std::string cpus;          // as the kernel lists them, "0-55,112-167"
  base::Bytes memory;        // zero: not known

  friend bool operator==(const NumaNode&, const NumaNode&) = default;
};

struct Topology {
  std::vector<NumaNode> numa_nodes;  // ascending id; empty: not known
  // The link of each pair of GPUs by index, row by row above the diagonal: (0,1) (0,2) … (1,2) …;
  // empty: not known.
  std::vector<GpuLink> links;

  friend bool operator==(const Topology&, const Topology&) = default;
};

// Returns the index of the pair in Topology::links of a node with `gpus` GPUs. a != b, both < gpus.
std::size_t link_index(std::size_t gpus, std::size_t a, std::size_t b);

// The link of a pair; kUnknown where the topology does not have it.
GpuLink link_between(const Topology& topology, std::size_t gpus, std::size_t a, std::size_t b);

// The socket of a NUMA node; -1 where it is not known.
std::int32_t socket_of(const Topology& topology, std::int32_t numa_node);

}  // namespace gpu_platform::model
