#pragma once

#include <cstdint>

#include "scheduling/testing/world.h"

// Nodes wired like real boards, for tests and benchmarks.

namespace gpu_platform::scheduling {

// Every pair of GPUs by where the two lie.
inline NodeBuilder wired(NodeBuilder builder, model::GpuLink on_numa_node,
                         model::GpuLink elsewhere) {
  const model::Node node = builder;
  const auto gpus = static_cast<std::uint32_t>(node.gpus.size());
  for (std::uint32_t a = 0; a < gpus; ++a) {
    for (std::uint32_t b = a + 1; b < gpus; ++b) {
      const bool is_near = node.gpus[a].info.numa_node == node.gpus[b].info.numa_node;
      builder.link(a, b, is_near ? on_numa_node : elsewhere);
    }
  }
  return builder;
}

// Eight GPUs on NVSwitch, four to a NUMA node and socket.
inline NodeBuilder dgx_h100(std::uint64_t id) {
  return node(id)
      .gpus(8)
      .sockets({0, 1})
      .cpus(112)
      .memory(base::kGiB * 2048)
      .links_between_all(nvlinks(18));
}

// Eight GPUs on NVSwitch; each socket has two NUMA nodes with two GPUs each.
inline NodeBuilder dgx_a100_nps4(std::uint64_t id) {
  return node(id)
      .gpus(8, "A100-80GB", base::kGiB * 80, 2)
      .sockets({0, 0, 1, 1})
      .cpus(128)
      .memory(base::kGiB * 1024)
      .links_between_all(nvlinks(12));
}

// DGX-1: hybrid cube mesh, each GPU with one or two links to four others, a quad to each socket.
inline NodeBuilder v100x8(std::uint64_t id) {
  constexpr std::uint32_t kDouble[][2] = {{0, 3}, {0, 4}, {1, 2}, {1, 5},
                                          {2, 3}, {4, 7}, {5, 6}, {6, 7}};
  constexpr std::uint32_t kSingle[][2] = {{0, 1}, {0, 2}, {1, 3}, {2, 6},
                                          {3, 7}, {4, 5}, {4, 6}, {5, 7}};
  NodeBuilder board = wired(node(id).gpus(8, "V100-16GB", base::kGiB * 16).sockets({0, 1}).cpus(80),
                            {.kind = model::LinkKind::kNode}, {.kind = model::LinkKind::kSystem});
  for (const auto& [a, b] : kDouble) board.link(a, b, nvlinks(2));
  for (const auto& [a, b] : kSingle) board.link(a, b, nvlinks(1));
  return board;
}

// Eight PCIe cards, four to a socket, no NVLink.
inline NodeBuilder l40s_x8(std::uint64_t id) {
  return wired(node(id).gpus(8, "L40S-48GB", base::kGiB * 48).sockets({0, 1}).cpus(128),
               {.kind = model::LinkKind::kNode}, {.kind = model::LinkKind::kSystem});
}

// Four PCIe cards on one socket, NVLink bridges between 0 and 1, 2 and 3.
inline NodeBuilder a100_pcie_x4(std::uint64_t id) {
  return wired(node(id).gpus(4, "A100-80GB").sockets({0}), {.kind = model::LinkKind::kHostBridge},
               {.kind = model::LinkKind::kSystem})
      .link(0, 1, nvlinks(12))
      .link(2, 3, nvlinks(12));
}

}  // namespace gpu_platform::scheduling
