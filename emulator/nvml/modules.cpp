#include <string.h>

#include "nvml/board.h"

// Calls about a GPU as a part of a machine: its InfoROM, module, platform, interrupts; and short
// answers that follow from what kind of GPU it is.

using gpu_emulator::board;
using gpu_emulator::copy_text;
using gpu_emulator::fill_versioned;
using gpu_emulator::get;
using gpu_emulator::GpuState;
using gpu_emulator::kFunctionNotFound;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kNotSupported;
using gpu_emulator::kSuccess;
using gpu_emulator::kUninitialized;
using gpu_emulator::lacks;
using gpu_emulator::with_gpu;

namespace {

// The same for a GPU on every machine and after every restart.
std::uint64_t number_of(const GpuState& gpu) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char* at = gpu.uuid; at < gpu.uuid + sizeof gpu.uuid && *at != '\0'; ++at) {
    hash = (hash ^ static_cast<unsigned char>(*at)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, unsigned int object, char* version,
                                         unsigned int length) {
  // nvmlInforomObject_t: OEM, ECC, power, DEN.
  constexpr unsigned int kLastObject = 3;
  if (board() == nullptr) return kUninitialized;
  if (version == nullptr || object > kLastObject) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (object == 0) return copy_text(gpu.inforom_oem, version, length);
    const bool is_there = object == 1 && gpu.inforom_ecc[0] != '\0';
    return is_there ? copy_text(gpu.inforom_ecc, version, length) : kNotSupported;
  });
}

nvmlReturn_t nvmlDeviceGetInforomImageVersion(nvmlDevice_t device, char* version,
                                              unsigned int length) {
  if (board() == nullptr) return kUninitialized;
  if (version == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    return copy_text(gpu.inforom_image, version, length);
  });
}

nvmlReturn_t nvmlDeviceGetInforomConfigurationChecksum(nvmlDevice_t device,
                                                       unsigned int* checksum) {
  return get(device, checksum,
             [](const GpuState& gpu) { return static_cast<std::uint32_t>(number_of(gpu)); });
}

nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device) {
  return with_gpu(device, [](const GpuState&, std::uint32_t) { return kSuccess; });
}

// Zero where the GPU is a card, not a module of a baseboard.
nvmlReturn_t nvmlDeviceGetModuleId(nvmlDevice_t device, unsigned int* id) {
  if (lacks(__func__)) return kFunctionNotFound;
  return get(device, id, [](const GpuState& gpu) { return gpu.module_id; });
}

nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t device, gpu_emulator::PlatformInfo* info) {
  if (lacks(__func__)) return kFunctionNotFound;
  if (board() == nullptr) return kUninitialized;
  if (info == nullptr) return kInvalidArgument;
  // The first version has the same layout with other meanings.
  const unsigned int version = info->version;
  if (version != gpu_emulator::version_of<gpu_emulator::PlatformInfo>(1) &&
      version != gpu_emulator::version_of<gpu_emulator::PlatformInfo>(2)) {
    return gpu_emulator::kArgumentVersionMismatch;
  }
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    constexpr unsigned char kThroughSwitch = 1;
    if (gpu.architecture < gpu_emulator::kBlackwell || gpu.module_id == 0) return kNotSupported;
    *info = {};
    info->version = version;
    const std::uint64_t number = number_of(gpu);
    memcpy(info->ib_guid, &number, sizeof number);
    info->peer_type = kThroughSwitch;
    info->module_id = static_cast<unsigned char>(gpu.module_id);
    return kSuccess;
  });
}

// A number that is this GPU's alone.
nvmlReturn_t nvmlDeviceGetPdi(nvmlDevice_t device, gpu_emulator::Pdi* pdi) {
  if (lacks(__func__)) return kFunctionNotFound;
  return fill_versioned(device, pdi, 1, [&](const GpuState& gpu) {
    pdi->value = number_of(gpu);
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetIrqNum(nvmlDevice_t device, unsigned int* irq) {
  constexpr unsigned int kFirst = 160;
  return get(device, irq, [](const GpuState& gpu) { return kFirst + gpu.minor; });
}

nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, gpu_emulator::AddressingMode* mode) {
  if (lacks(__func__)) return kFunctionNotFound;
  return fill_versioned(device, mode, 1, [&](const GpuState&) {
    mode->value = 0;  // neither through the kernel's page tables nor through ATS
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t device, gpu_emulator::C2cModeInfo* info) {
  if (lacks(__func__)) return kFunctionNotFound;
  if (board() == nullptr) return kUninitialized;
  if (info == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState&, std::uint32_t) {
    info->is_enabled = 0;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetCapabilities(nvmlDevice_t device,
                                       gpu_emulator::DeviceCapabilities* capabilities) {
  if (lacks(__func__)) return kFunctionNotFound;
  return fill_versioned(device, capabilities, 1, [&](const GpuState&) {
    capabilities->mask = 0;  // no memory of the host as the GPU's own
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t device, gpu_emulator::RepairStatus* status) {
  if (lacks(__func__)) return kFunctionNotFound;
  return fill_versioned(device, status, 1, [&](const GpuState&) {
    status->is_channel_repair_pending = status->is_tpc_repair_pending = 0;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const gpu_emulator::Uuid* uuid, nvmlDevice_t* device) {
  constexpr unsigned int kAscii = 1;
  if (lacks(__func__)) return kFunctionNotFound;
  if (board() == nullptr) return kUninitialized;
  if (uuid == nullptr || device == nullptr) return kInvalidArgument;
  if (uuid->version != gpu_emulator::version_of<gpu_emulator::Uuid>(1)) {
    return gpu_emulator::kArgumentVersionMismatch;
  }
  if (uuid->type != kAscii) return uuid->type == 2 ? kNotSupported : kInvalidArgument;
  char text[sizeof uuid->text + 1] = {};
  memcpy(text, uuid->text, sizeof uuid->text);
  return nvmlDeviceGetHandleByUUID(text, device);
}

// Kinds of units, excluded devices and cards of which no board has any.
nvmlReturn_t nvmlUnitGetCount(unsigned int* count) {
  if (board() == nullptr) return kUninitialized;
  if (count == nullptr) return kInvalidArgument;
  *count = 0;
  return kSuccess;
}

nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int* count) {
  return nvmlUnitGetCount(count);
}

nvmlReturn_t nvmlGetBlacklistDeviceCount(unsigned int* count) {
  return nvmlUnitGetCount(count);
}

nvmlReturn_t nvmlSystemGetHicVersion(unsigned int* count, void*) {
  return nvmlUnitGetCount(count);
}

// The clocks at which a GPU works, and the states that go with them.
nvmlReturn_t nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_t device, unsigned int* states,
                                                     unsigned int size) {
  constexpr unsigned int kUnknown = 32;
  if (board() == nullptr) return kUninitialized;
  if (states == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    const bool can_sleep = gpu.clock_memory_idle_mhz < gpu.clock_memory_max_mhz;
    const unsigned int entries = size / sizeof(unsigned int);
    if (entries < 2) return gpu_emulator::kInsufficientSize;
    for (unsigned int i = 0; i < entries; ++i) states[i] = kUnknown;
    states[0] = 0;
    if (can_sleep) states[1] = 8;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t device, unsigned int clock,
                                              unsigned int state, unsigned int* min_mhz,
                                              unsigned int* max_mhz) {
  constexpr unsigned int kMemory = 2;
  if (board() == nullptr) return kUninitialized;
  if (min_mhz == nullptr || max_mhz == nullptr || clock > 3) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    const bool can_sleep = gpu.clock_memory_idle_mhz < gpu.clock_memory_max_mhz;
    if (state != 0 && !(state == 8 && can_sleep)) return kInvalidArgument;
    const bool is_memory = clock == kMemory;
    const unsigned int idle = is_memory ? gpu.clock_memory_idle_mhz : gpu.clock_sm_idle_mhz;
    const unsigned int greatest = is_memory ? gpu.clock_memory_max_mhz : gpu.clock_sm_max_mhz;
    *max_mhz = state == 0 ? greatest : idle;
    *min_mhz = state == 0 && is_memory ? greatest : idle;
    return kSuccess;
  });
}

// Sessions that capture the frame buffer, of which there are none.
nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t device, gpu_emulator::FbcStats* stats) {
  if (board() == nullptr) return kUninitialized;
  if (stats == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState&, std::uint32_t) {
    *stats = {};
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t device, unsigned int* count, void*) {
  return get(device, count, [](const GpuState&) { return 0u; });
}

// Confidential computing is off on all machines.
nvmlReturn_t nvmlSystemGetConfComputeState(gpu_emulator::ConfComputeState* state) {
  if (lacks(__func__)) return kFunctionNotFound;
  if (board() == nullptr) return kUninitialized;
  if (state == nullptr) return kInvalidArgument;
  *state = {};
  return kSuccess;
}

nvmlReturn_t nvmlSystemGetConfComputeCapabilities(gpu_emulator::ConfComputeCapabilities* out) {
  if (lacks(__func__)) return kFunctionNotFound;
  if (board() == nullptr) return kUninitialized;
  if (out == nullptr) return kInvalidArgument;
  *out = {};
  return kSuccess;
}
