#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "hardware/readings.h"

// From what each GPU says of its own links to what lies between two GPUs. Pure.

namespace gpu_platform::hardware {

struct PciPlace {
  std::uint32_t domain = 0;
  std::uint32_t bus = 0;
  std::uint32_t device = 0;

  friend auto operator<=>(const PciPlace&, const PciPlace&) = default;
};

enum class NvLinkPeer : std::uint8_t { kUnknown, kGpu, kSwitch, kOther };

// The far end of one NVLink that is up.
struct NvLinkEnd {
  NvLinkPeer peer = NvLinkPeer::kUnknown;
  std::optional<PciPlace> place;
  std::uint32_t version = 0;  // 0: not known
};

struct NvLinkPorts {
  std::optional<PciPlace> own;
  std::vector<NvLinkEnd> ends;
};

// Links and their version between two of `all`, by index; nothing where there is no NVLink between
// them. Drivers that do not tell what the peer is: a peer that is not one of `all` is a switch.
// The switches of one machine are one fabric: a link to any of them reaches every GPU on them.
std::optional<GpuLink> nvlink_between(const std::vector<NvLinkPorts>& all, std::uint32_t a,
                                      std::uint32_t b);

// The kind for a value of nvmlGpuTopologyLevel_t; nothing for values that are none. GPUs of one
// board (kNvmlTopologyInternal) are as near as behind one switch.
std::optional<LinkKind> kind_of_topology_level(unsigned level);

}  // namespace gpu_platform::hardware
