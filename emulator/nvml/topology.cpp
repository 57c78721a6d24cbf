#include <string.h>

#include "nvml/board.h"

// Calls about the place of a GPU: the CPUs and memory near it, and other GPUs.

using gpu_emulator::board;
using gpu_emulator::BoardState;
using gpu_emulator::GpuState;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kNotSupported;
using gpu_emulator::kSuccess;
using gpu_emulator::kUninitialized;
using gpu_emulator::with_gpu;

namespace {

// nvmlAffinityScope_t
constexpr unsigned int kScopeNode = 0;
constexpr unsigned int kScopeSocket = 1;

// Returns the GPU's own NUMA node, or all of its socket.
template <class Visit>
void for_each_node(const GpuState& gpu, unsigned int scope, Visit visit) {
  const BoardState& state = *board();
  const std::uint32_t own = gpu.numa_node % gpu_emulator::kMaxNumaNodes;
  for (std::uint32_t i = 0; i < gpu_emulator::kMaxNumaNodes; ++i) {
    const bool is_of_socket =
        i < state.numa_count && state.numa_nodes[i].socket == state.numa_nodes[own].socket;
    if (i == own || (scope == kScopeSocket && is_of_socket)) visit(i);
  }
}

// *count says how many fit, when the caller has room at all, and then how many were written.
template <class Matches>
nvmlReturn_t list_gpus(unsigned int* count, nvmlDevice_t* devices, Matches matches) {
  unsigned int found = 0;
  for (std::uint32_t place = 0; place < gpu_emulator::visible_count(); ++place) {
    const std::uint32_t i = gpu_emulator::visible_gpu(place);
    if (!matches(i)) continue;
    if (devices != nullptr && found < *count) devices[found] = gpu_emulator::handle_of(i);
    ++found;
  }
  *count = devices == nullptr || found < *count ? found : *count;
  return kSuccess;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words,
                                      unsigned long* cpus) {
  return nvmlDeviceGetCpuAffinityWithinScope(device, words, cpus, kScopeNode);
}

nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned int words,
                                                 unsigned long* cpus, unsigned int scope) {
  if (board() == nullptr) return kUninitialized;
  if (cpus == nullptr || words == 0 || scope > kScopeSocket) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    memset(cpus, 0, words * sizeof *cpus);
    for_each_node(gpu, scope, [&](std::uint32_t node) {
      for (unsigned int i = 0; i < words && i < gpu_emulator::kCpuWords; ++i) {
        cpus[i] |= board()->numa_nodes[node].cpus[i];
      }
    });
    return kSuccess;
  });
}

// Calls for machines with a GPU that is a NUMA node of its own; none of the boards is one.
nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned int* node) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  if (board() == nullptr) return kUninitialized;
  if (node == nullptr) return kInvalidArgument;
  return with_gpu(device, [](const GpuState&, std::uint32_t) { return kNotSupported; });
}

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words,
                                         unsigned long* nodes, unsigned int scope) {
  if (board() == nullptr) return kUninitialized;
  if (nodes == nullptr || words == 0 || scope > kScopeSocket) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    memset(nodes, 0, words * sizeof *nodes);
    for_each_node(gpu, scope, [&](std::uint32_t node) { nodes[0] |= 1ul << node; });
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device1, nvmlDevice_t device2,
                                                 unsigned int* level) {
  if (board() == nullptr) return kUninitialized;
  if (level == nullptr) return kInvalidArgument;
  return with_gpu(device1, [&](const GpuState&, std::uint32_t first) {
    return with_gpu(device2, [&](const GpuState&, std::uint32_t second) {
      *level = static_cast<unsigned int>(board()->topology[first][second]);
      return kSuccess;
    });
  });
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, unsigned int level,
                                              unsigned int* count, nvmlDevice_t* devices) {
  if (board() == nullptr) return kUninitialized;
  if (count == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState&, std::uint32_t self) {
    return list_gpus(count, devices, [&](std::uint32_t other) {
      return other != self && static_cast<unsigned int>(board()->topology[self][other]) == level;
    });
  });
}

nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpu, unsigned int* count,
                                         nvmlDevice_t* devices) {
  if (board() == nullptr) return kUninitialized;
  if (count == nullptr || cpu >= gpu_emulator::kCpuWords * 64) return kInvalidArgument;
  return list_gpus(count, devices, [&](std::uint32_t i) {
    const auto& near = numa_node_of(*board(), board()->gpus[i]);
    return (near.cpus[cpu / 64] >> cpu % 64 & 1) != 0;
  });
}
