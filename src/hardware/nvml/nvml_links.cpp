#include "hardware/nvml/nvml_links.h"

#include <algorithm>

#include "hardware/nvml/nvml_abi.h"

namespace gpu_platform::hardware {
namespace {

// Returns the slower of two versions, or 0 if one is not known.
std::uint32_t slower(std::uint32_t a, std::uint32_t b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

struct Bundle {
  std::uint32_t links = 0;
  std::uint32_t version = 0;  // of the slowest link; 0: of none is it known

  void add(const NvLinkEnd& end) {
    version = slower(version, end.version);
    ++links;
  }
};

bool is_one_of(const std::vector<NvLinkPorts>& all, const std::optional<PciPlace>& place) {
  return place && std::ranges::any_of(all, [&](const auto& gpu) { return gpu.own == place; });
}

Bundle direct(const NvLinkPorts& from, const NvLinkPorts& to) {
  Bundle bundle;
  if (!to.own) return bundle;
  for (const NvLinkEnd& end : from.ends) {
    if (end.peer != NvLinkPeer::kSwitch && end.place == to.own) bundle.add(end);
  }
  return bundle;
}

Bundle to_switches(const std::vector<NvLinkPorts>& all, const NvLinkPorts& from) {
  Bundle bundle;
  for (const NvLinkEnd& end : from.ends) {
    const bool is_guessed = end.peer == NvLinkPeer::kUnknown && end.place;
    if (end.peer == NvLinkPeer::kSwitch || (is_guessed && !is_one_of(all, end.place))) {
      bundle.add(end);
    }
  }
  return bundle;
}

}  // namespace

std::optional<GpuLink> nvlink_between(const std::vector<NvLinkPorts>& all, std::uint32_t a,
                                      std::uint32_t b) {
  const Bundle forth = direct(all[a], all[b]);
  const Bundle back = direct(all[b], all[a]);
  // Both ends see a link; where one of them keeps silent the other's word counts.
  if (const std::uint32_t links = std::max(forth.links, back.links); links > 0) {
    return GpuLink{a, b, LinkKind::kNvLink, links, slower(forth.version, back.version)};
  }
  const Bundle up = to_switches(all, all[a]);
  const Bundle down = to_switches(all, all[b]);
  const std::uint32_t links = std::min(up.links, down.links);
  if (links == 0) return std::nullopt;
  return GpuLink{a, b, LinkKind::kNvLink, links, slower(up.version, down.version)};
}

std::optional<LinkKind> kind_of_topology_level(unsigned level) {
  switch (level) {
    case kNvmlTopologyInternal:
    case kNvmlTopologySingleSwitch:
      return LinkKind::kPix;
    case kNvmlTopologyMultipleSwitches:
      return LinkKind::kPxb;
    case kNvmlTopologyHostBridge:
      return LinkKind::kPhb;
    case kNvmlTopologyNode:
      return LinkKind::kNode;
    case kNvmlTopologySystem:
      return LinkKind::kSystem;
    default:
      return std::nullopt;
  }
}

}  // namespace gpu_platform::hardware
