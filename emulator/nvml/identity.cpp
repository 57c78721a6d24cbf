#include <stdio.h>
#include <string.h>

#include "nvml/board.h"
#include "nvml/pci_info.h"

// Calls about fixed properties: names, places, kinds.

using gpu_emulator::board;
using gpu_emulator::copy_text;
using gpu_emulator::Device;
using gpu_emulator::get;
using gpu_emulator::get_of_both;
using gpu_emulator::GpuState;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kNotSupported;
using gpu_emulator::kSuccess;
using gpu_emulator::kUninitialized;
using gpu_emulator::PciInfo;
using gpu_emulator::with_device;
using gpu_emulator::with_gpu;
using gpu_emulator::write_address;
using gpu_emulator::write_bus_ids;
using gpu_emulator::write_pci_info;

namespace {

template <std::size_t N>
nvmlReturn_t get_text(nvmlDevice_t device, char (GpuState::*field)[N], char* out,
                      unsigned int length) {
  if (board() == nullptr) return kUninitialized;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    return (gpu.*field)[0] == '\0' ? kNotSupported : copy_text(gpu.*field, out, length);
  });
}

// Answers what is the same on every board.
template <class Value>
nvmlReturn_t always(nvmlDevice_t device, Value* out, Value value) {
  return get(device, out, [&](const GpuState&) { return value; });
}

}  // namespace

// An instance has the name of its GPU before its own: "NVIDIA H100 80GB HBM3 MIG 1g.10gb".
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t handle, char* name, unsigned int length) {
  if (board() == nullptr) return kUninitialized;
  return with_device(handle, [&](const GpuState& gpu, const Device& device) -> nvmlReturn_t {
    if (device.is_whole()) return copy_text(gpu.name, name, length);
    const auto* profile = gpu_emulator::profile_of(gpu, device.instance.gpu_instance);
    if (profile == nullptr) return kInvalidArgument;
    char own[gpu_emulator::kMigNameBytes];
    gpu_emulator::write_mig_name(*profile, gpu_emulator::compute_slices_of(gpu, device.instance),
                                 own);
    char whole[sizeof gpu.name + sizeof own + 8];
    snprintf(whole, sizeof whole, "%.*s MIG %s", static_cast<int>(sizeof gpu.name - 1), gpu.name,
             own);
    return copy_text(whole, name, length);
  });
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char* uuid, unsigned int length) {
  if (board() == nullptr) return kUninitialized;
  return with_device(handle, [&](const GpuState& gpu, const Device& device) -> nvmlReturn_t {
    if (device.is_whole()) return copy_text(gpu.uuid, uuid, length);
    char own[gpu_emulator::kMigUuidBytes];
    gpu_emulator::write_mig_uuid(gpu, device.instance, own);
    return copy_text(own, uuid, length);
  });
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char* serial, unsigned int length) {
  return get_text(device, &GpuState::serial, serial, length);
}

nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char* version, unsigned int length) {
  return get_text(device, &GpuState::vbios_version, version, length);
}

nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char* part_number,
                                          unsigned int length) {
  return get_text(device, &GpuState::part_number, part_number, length);
}

// An instance is counted on its GPU.
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned int* out) {
  if (board() == nullptr) return kUninitialized;
  if (out == nullptr) return kInvalidArgument;
  return with_device(handle, [&](const GpuState& gpu, const Device& device) {
    *out = gpu_emulator::place_of_visible(device.gpu);
    if (device.is_whole()) return kSuccess;
    gpu_emulator::InstanceId found;
    for (*out = 0; gpu_emulator::instance_at(gpu, *out, &found); ++*out) {
      if (found == device.instance) return kSuccess;
    }
    return gpu_emulator::kNotFound;
  });
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int* minor) {
  if (board() == nullptr) return kUninitialized;
  if (minor == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState&, std::uint32_t index) {
    *minor = gpu_emulator::minor_of(index);
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, unsigned int* brand) {
  return get_of_both(device, brand, [](const GpuState& gpu) { return gpu.brand; });
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned int* architecture) {
  return get_of_both(device, architecture, [](const GpuState& gpu) { return gpu.architecture; });
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor) {
  if (board() == nullptr) return kUninitialized;
  if (major == nullptr || minor == nullptr) return kInvalidArgument;
  return with_device(device, [&](const GpuState& gpu, const Device&) {
    *major = static_cast<int>(gpu.compute_major);
    *minor = static_cast<int>(gpu.compute_minor);
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, gpu_emulator::PciInfoV1* pci) {
  if (board() == nullptr) return kUninitialized;
  if (pci == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    memset(pci, 0, sizeof *pci);
    write_bus_ids(gpu.pci, pci->bus_id, nullptr);
    write_address(gpu.pci, pci);
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, gpu_emulator::PciInfoV2* pci) {
  if (board() == nullptr) return kUninitialized;
  if (pci == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    memset(pci, 0, sizeof *pci);
    write_bus_ids(gpu.pci, pci->bus_id, nullptr);
    write_address(gpu.pci, pci);
    pci->pci_subsystem_id = gpu.pci.subsystem_id;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, PciInfo* pci) {
  if (board() == nullptr) return kUninitialized;
  if (pci == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    write_pci_info(gpu.pci, pci);
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int* generation) {
  return get(device, generation, [](const GpuState& gpu) { return gpu.pcie_generation; });
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned int* width) {
  return get(device, width, [](const GpuState& gpu) { return gpu.pcie_width; });
}

nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t device, unsigned int* generation) {
  return get(device, generation, [](const GpuState& gpu) { return gpu.pcie_generation; });
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned int* generation) {
  return get(device, generation,
             [](const GpuState& gpu) { return gpu_emulator::read_gpu(gpu).pcie_generation; });
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned int* width) {
  return get(device, width, gpu_emulator::pcie_width);
}

nvmlReturn_t nvmlDeviceGetPcieLinkMaxSpeed(nvmlDevice_t device, unsigned int* speed) {
  // NVML_PCIE_LINK_MAX_SPEED_*: 1 is 2.5 GT/s, and so on by generation.
  return get(device, speed, [](const GpuState& gpu) { return gpu.pcie_generation; });
}

nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t device, unsigned int* mbps) {
  return get(device, mbps, [](const GpuState& gpu) {
    constexpr std::uint32_t kMegatransfers[] = {0, 2500, 5000, 8000, 16000, 32000, 64000, 128000};
    return kMegatransfers[gpu_emulator::read_gpu(gpu).pcie_generation % 8];
  });
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, gpu_emulator::PciInfoExt* pci) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  return gpu_emulator::fill_versioned(device, pci, 1, [&](const GpuState& gpu) {
    PciInfo plain;
    write_pci_info(gpu.pci, &plain);
    memcpy(pci->bus_id, plain.bus_id, sizeof pci->bus_id);
    write_address(gpu.pci, pci);
    pci->pci_subsystem_id = gpu.pci.subsystem_id;
    pci->base_class = 3;  // display controller
    pci->sub_class = 2;   // without a display
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned int* board_id) {
  return get(device, board_id, [](const GpuState& gpu) { return gpu.pci.bus << 8; });
}

nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned int* is_multi_gpu) {
  return always(device, is_multi_gpu, 0u);
}

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t device1, nvmlDevice_t device2, int* is_same) {
  if (board() == nullptr) return kUninitialized;
  if (is_same == nullptr) return kInvalidArgument;
  return with_gpu(device1, [&](const GpuState&, std::uint32_t first) {
    return with_gpu(device2, [&](const GpuState&, std::uint32_t second) {
      *is_same = first == second ? 1 : 0;
      return kSuccess;
    });
  });
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int* cores) {
  return get(device, cores, [](const GpuState& gpu) { return gpu.cores; });
}

nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned int* bits) {
  return get(device, bits, [](const GpuState& gpu) { return gpu.memory_bus_bits; });
}

nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_t device, unsigned int* type) {
  return always(device, type, 2u);  // PCIe
}

nvmlReturn_t nvmlDeviceGetPowerSource(nvmlDevice_t device, unsigned int* source) {
  return always(device, source, 0u);  // mains
}

nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char* version) {
  if (board() == nullptr) return kUninitialized;
  if (version == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (gpu.architecture < gpu_emulator::kTuring) return kNotSupported;
    constexpr unsigned int kBuffer = 0x40;  // what NVML says that callers provide
    return copy_text(board()->driver_version, version, kBuffer);
  });
}

nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned int* is_enabled,
                                          unsigned int* default_mode) {
  if (board() == nullptr) return kUninitialized;
  if (is_enabled == nullptr || default_mode == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (gpu.architecture < gpu_emulator::kTuring) return kNotSupported;
    *is_enabled = *default_mode = 1;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device, unsigned int* mode) {
  return always(device, mode, 0u);  // none
}
