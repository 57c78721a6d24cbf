#include "smi/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

namespace gpu_emulator {

namespace {

constexpr unsigned int kMaxLinks = 18;

constexpr std::string_view kLegend =
    "\n"
    "Legend:\n"
    "\n"
    "  X    = Self\n"
    "  SYS  = Through PCIe and the interconnect between NUMA nodes\n"
    "  NODE = Through PCIe and the interconnect between PCIe host bridges of a NUMA node\n"
    "  PHB  = Through PCIe and one PCIe host bridge\n"
    "  PXB  = Through several PCIe bridges, and no host bridge\n"
    "  PIX  = Through one PCIe bridge at most\n"
    "  NV#  = Through a bond of # NVLinks\n";

// The active links of a GPU to switches, and those to the GPU of that bus id.
struct Links {
  unsigned int to_switches = 0;
  unsigned int to_peer = 0;
};

Links links_of(const Gpu& gpu, std::string_view peer) {
  constexpr unsigned int kSwitchType = 2;
  Links links;
  for (unsigned int link = 0; link < kMaxLinks; ++link) {
    unsigned int is_active = 0;
    if (gpu.call<decltype(nvmlDeviceGetNvLinkState)>("nvmlDeviceGetNvLinkState", link,
                                                     &is_active) != kSuccess ||
        is_active == 0) {
      continue;
    }
    unsigned int type = 0;
    gpu.call<decltype(nvmlDeviceGetNvLinkRemoteDeviceType)>("nvmlDeviceGetNvLinkRemoteDeviceType",
                                                            link, &type);
    PciInfo remote{};
    gpu.call<decltype(nvmlDeviceGetNvLinkRemotePciInfo_v2)>("nvmlDeviceGetNvLinkRemotePciInfo_v2",
                                                            link, &remote);
    if (type == kSwitchType) ++links.to_switches;
    if (peer == remote.bus_id) ++links.to_peer;
  }
  return links;
}

std::string common_ancestor(const Gpu& a, const Gpu& b) {
  unsigned int level = 0;
  const Return status = a.call<decltype(nvmlDeviceGetTopologyCommonAncestor)>(
      "nvmlDeviceGetTopologyCommonAncestor", b.device(), &level);
  if (status != kSuccess) return "N/A";
  constexpr std::string_view kNames[] = {"PIX", "PIX", "PXB", "PHB", "NODE", "SYS"};
  const std::size_t place = level / 10;
  return std::string(place < std::size(kNames) ? kNames[place] : "SYS");
}

std::string connection(const Gpu& a, const Gpu& b) {
  if (a.index() == b.index()) return " X ";
  const Links of_a = links_of(a, b.bus_id());
  const Links of_b = links_of(b, a.bus_id());
  const unsigned int switched = std::min(of_a.to_switches, of_b.to_switches);
  const unsigned int links = of_a.to_peer > 0 ? of_a.to_peer : switched;
  return links > 0 ? fmt::format("NV{}", links) : common_ancestor(a, b);
}

// "0-55,112-167" of the bits of words.
std::string ranges_of(std::span<const unsigned long> words) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  const auto has = [&](std::size_t bit) {
    return bit < words.size() * kBits && (words[bit / kBits] >> (bit % kBits) & 1) != 0;
  };
  std::string text;
  for (std::size_t bit = 0; bit < words.size() * kBits; ++bit) {
    if (!has(bit)) continue;
    const std::size_t first = bit;
    while (has(bit + 1)) ++bit;
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (bit > first) text += fmt::format("-{}", bit);
  }
  return text.empty() ? "N/A" : text;
}

std::string cpus_near(const Gpu& gpu) {
  std::array<unsigned long, 16> words{};
  const Return status = gpu.call<decltype(nvmlDeviceGetCpuAffinity)>(
      "nvmlDeviceGetCpuAffinity", static_cast<unsigned int>(words.size()), words.data());
  return status == kSuccess ? ranges_of(words) : "N/A";
}

std::string nodes_near(const Gpu& gpu) {
  std::array<unsigned long, 16> words{};
  const Return status = gpu.call<decltype(nvmlDeviceGetMemoryAffinity)>(
      "nvmlDeviceGetMemoryAffinity", static_cast<unsigned int>(words.size()), words.data(), 0U);
  return status == kSuccess ? ranges_of(words) : "N/A";
}

}  // namespace

std::string topology_matrix(std::span<const Gpu> gpus) {
  std::string out;
  for (const Gpu& gpu : gpus) out += fmt::format("\tGPU{}", gpu.index());
  out += "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n";
  for (const Gpu& row : gpus) {
    out += fmt::format("GPU{}", row.index());
    for (const Gpu& column : gpus) out += "\t" + connection(row, column);
    out += fmt::format("\t{}\t{}\t\tN/A\n", cpus_near(row), nodes_near(row));
  }
  return out + std::string(kLegend);
}

}  // namespace gpu_emulator
