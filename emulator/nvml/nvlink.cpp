#include <string.h>

#include <iterator>

#include "nvml/board.h"
#include "nvml/pci_info.h"

// Calls about NVLink: links, peers, fabric.

using gpu_emulator::board;
using gpu_emulator::GpuState;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kNotSupported;
using gpu_emulator::kSuccess;
using gpu_emulator::kUninitialized;
using gpu_emulator::LinkPeer;
using gpu_emulator::NvLink;
using gpu_emulator::PciInfo;
using gpu_emulator::TopologyLevel;
using gpu_emulator::with_gpu;
using gpu_emulator::write_pci_info;

namespace {

// nvmlGpuP2PStatus_t and nvmlGpuP2PCapsIndex_t
constexpr unsigned int kP2pOk = 0;
constexpr unsigned int kP2pChipset = 1;
constexpr unsigned int kP2pNotSupported = 5;
constexpr unsigned int kP2pRead = 0;
constexpr unsigned int kP2pWrite = 1;
constexpr unsigned int kP2pPci = 4;

// Links are counted from 0; a GPU without NVLink answers NOT_SUPPORTED, a number beyond its links
// is an invalid argument.
template <class Answer>
nvmlReturn_t with_link(nvmlDevice_t device, unsigned int link, const void* out, Answer answer) {
  if (board() == nullptr) return kUninitialized;
  if (out == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (link_count(gpu) == 0) return kNotSupported;
    if (link >= link_count(gpu)) return kInvalidArgument;
    return answer(gpu_emulator::link_of(gpu, link));
  });
}

bool is_address(const gpu_emulator::PciAddress& a, const gpu_emulator::PciAddress& b) {
  return a.domain == b.domain && a.bus == b.bus && a.device == b.device;
}

// Returns whether NVLink leads from one GPU to the other: directly, or through one switch.
bool are_linked(const GpuState& a, const GpuState& b) {
  for (std::uint32_t i = 0; i < link_count(a); ++i) {
    const NvLink out = gpu_emulator::link_of(a, i);
    if (out.active == 0) continue;
    if (out.peer == LinkPeer::kGpu && is_address(out.remote, b.pci)) return true;
    if (out.peer != LinkPeer::kSwitch) continue;
    for (std::uint32_t k = 0; k < link_count(b); ++k) {
      const NvLink in = gpu_emulator::link_of(b, k);
      if (in.active != 0 && in.peer == LinkPeer::kSwitch && is_address(in.remote, out.remote)) {
        return true;
      }
    }
  }
  return false;
}

// Fills in the fields that all versions of the structure have. A fabric of one machine has no
// identity beyond it.
template <class Info>
nvmlReturn_t fill_fabric(const GpuState& gpu, Info* info) {
  constexpr unsigned char kCompleted = 3;
  if (gpu.has_fabric == 0) return kNotSupported;
  memset(info->cluster_uuid, 0, sizeof info->cluster_uuid);
  info->status = kSuccess;
  info->clique_id = 0;
  info->state = kCompleted;
  return kSuccess;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
                                      unsigned int* is_active) {
  return with_link(device, link, is_active, [&](const NvLink& found) {
    *is_active = found.active;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int link,
                                        unsigned int* version) {
  return with_link(device, link, version, [&](const NvLink& found) {
    *version = found.version;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                                 PciInfo* pci) {
  return with_link(device, link, pci, [&](const NvLink& found) {
    if (found.active == 0) return kNotSupported;
    write_pci_info(found.remote, pci);
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
                                                 unsigned int* type) {
  return with_link(device, link, type, [&](const NvLink& found) {
    if (found.active == 0) return kNotSupported;
    *type = static_cast<unsigned int>(found.peer);
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link,
                                              gpu_emulator::PciInfoV2* pci) {
  return with_link(device, link, pci, [&](const NvLink& found) {
    if (found.active == 0) return kNotSupported;
    memset(pci, 0, sizeof *pci);
    gpu_emulator::write_bus_ids(found.remote, pci->bus_id, nullptr);
    gpu_emulator::write_address(found.remote, pci);
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link,
                                           unsigned int capability, unsigned int* is_supported) {
  // nvmlNvLinkCapability_t: peers, system memory, atomics on both, SLI bridge, valid.
  constexpr unsigned int kPeers = 0;
  constexpr unsigned int kPeerAtomics = 2;
  constexpr unsigned int kValid = 5;
  if (capability > kValid) return board() == nullptr ? kUninitialized : kInvalidArgument;
  return with_link(device, link, is_supported, [&](const NvLink& found) {
    const bool can = capability == kPeers || capability == kPeerAtomics || capability == kValid;
    *is_supported = found.active != 0 && can ? 1 : 0;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link,
                                             unsigned int counter, unsigned long long* count) {
  // nvmlNvLinkErrorCounter_t: replays, recoveries, CRC of flits, of data, ECC.
  constexpr unsigned int kCounters = 5;
  if (counter >= kCounters) return board() == nullptr ? kUninitialized : kInvalidArgument;
  if (board() == nullptr) return kUninitialized;
  if (count == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (link_count(gpu) == 0) return kNotSupported;
    if (link >= link_count(gpu)) return kInvalidArgument;
    if (gpu_emulator::link_of(gpu, link).active == 0) return kNotSupported;
    constexpr std::uint32_t kOf[] = {gpu_emulator::kLinkReplay, gpu_emulator::kLinkRecovery,
                                     gpu_emulator::kLinkCrc};
    // Injected errors are of the first link.
    const bool has_errors = link == 0 && counter < std::size(kOf);
    *count = has_errors ? gpu.link_errors[kOf[counter]].load(std::memory_order_relaxed) : 0;
    return kSuccess;
  });
}

// Deprecated and unsupported since Ampere: the counters are field values now.
nvmlReturn_t nvmlDeviceGetNvLinkUtilizationCounter(nvmlDevice_t device, unsigned int link,
                                                   unsigned int counter, unsigned long long* rx,
                                                   unsigned long long* tx) {
  if (board() == nullptr) return kUninitialized;
  if (rx == nullptr || tx == nullptr || counter > 1) return kInvalidArgument;
  return with_link(device, link, rx, [](const NvLink&) { return kNotSupported; });
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device1, nvmlDevice_t device2, unsigned int kind,
                                    unsigned int* status) {
  if (board() == nullptr) return kUninitialized;
  if (status == nullptr || kind > kP2pPci) return kInvalidArgument;
  return with_gpu(device1, [&](const GpuState& a, std::uint32_t first) {
    return with_gpu(device2, [&](const GpuState& b, std::uint32_t second) {
      if (first == second) return kInvalidArgument;
      const bool is_near = board()->topology[first][second] <= TopologyLevel::kNumaNode;
      if (are_linked(a, b) && kind != kP2pPci) {
        *status = kP2pOk;
      } else if (kind == kP2pRead || kind == kP2pWrite || kind == kP2pPci) {
        *status = is_near ? kP2pOk : kP2pChipset;
      } else {
        *status = kP2pNotSupported;  // NVLink, and atomics over PCIe
      }
      return kSuccess;
    });
  });
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, gpu_emulator::GpuFabricInfo* info) {
  if (board() == nullptr) return kUninitialized;
  if (info == nullptr) return kInvalidArgument;
  return with_gpu(device,
                  [&](const GpuState& gpu, std::uint32_t) { return fill_fabric(gpu, info); });
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, gpu_emulator::GpuFabricInfoV2* info) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  if (board() == nullptr) return kUninitialized;
  if (info == nullptr) return kInvalidArgument;
  constexpr unsigned int kHealthMask = 2;  // bandwidth is known and full
  if (info->version == gpu_emulator::version_of<gpu_emulator::GpuFabricInfoV3>(3)) {
    auto* v3 = reinterpret_cast<gpu_emulator::GpuFabricInfoV3*>(info);
    return gpu_emulator::fill_versioned(device, v3, 3, [&](const GpuState& gpu) {
      v3->health_mask = kHealthMask;
      v3->health_summary = 1;  // healthy
      return fill_fabric(gpu, v3);
    });
  }
  return gpu_emulator::fill_versioned(device, info, 2, [&](const GpuState& gpu) {
    info->health_mask = kHealthMask;
    return fill_fabric(gpu, info);
  });
}
