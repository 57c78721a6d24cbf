#include "nvml/board.h"

// Calls that the library has and the boards answer with NOT_SUPPORTED, as the real ones do: calls
// for boards with fans, displays or a second chip, for Windows, and for the counters of an unused
// video encoder.

using gpu_emulator::board;
using gpu_emulator::GpuState;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kNotSupported;
using gpu_emulator::kSuccess;
using gpu_emulator::kUninitialized;
using gpu_emulator::with_gpu;

namespace {

nvmlReturn_t refuse(nvmlDevice_t device, const void* out) {
  if (board() == nullptr) return kUninitialized;
  if (out == nullptr) return kInvalidArgument;
  return with_gpu(device, [](const GpuState&, std::uint32_t) { return kNotSupported; });
}

}  // namespace

// Boards without fans: the chassis cools them.
nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned int* fans) {
  return refuse(device, fans);
}
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned int* percent) {
  return refuse(device, percent);
}
nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int, unsigned int* percent) {
  return refuse(device, percent);
}
nvmlReturn_t nvmlDeviceGetTargetFanSpeed(nvmlDevice_t device, unsigned int, unsigned int* percent) {
  return refuse(device, percent);
}
nvmlReturn_t nvmlDeviceGetMinMaxFanSpeed(nvmlDevice_t device, unsigned int* min, unsigned int*) {
  return refuse(device, min);
}

// Driver models are of another operating system.
nvmlReturn_t nvmlDeviceGetDriverModel(nvmlDevice_t device, unsigned int* current, unsigned int*) {
  return refuse(device, current);
}
nvmlReturn_t nvmlDeviceGetDriverModel_v2(nvmlDevice_t device, unsigned int* current,
                                         unsigned int*) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  return refuse(device, current);
}

nvmlReturn_t nvmlDeviceGetAutoBoostedClocksEnabled(nvmlDevice_t device, unsigned int* is_enabled,
                                                   unsigned int*) {
  return refuse(device, is_enabled);
}
nvmlReturn_t nvmlDeviceGetGpuOperationMode(nvmlDevice_t device, unsigned int* current,
                                           unsigned int*) {
  return refuse(device, current);
}
nvmlReturn_t nvmlDeviceGetBridgeChipInfo(nvmlDevice_t device, void* hierarchy) {
  return refuse(device, hierarchy);
}

nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned int* sessions,
                                       unsigned int* frames_per_second, unsigned int* latency_us) {
  if (board() == nullptr) return kUninitialized;
  if (sessions == nullptr || frames_per_second == nullptr || latency_us == nullptr) {
    return kInvalidArgument;
  }
  return with_gpu(device, [&](const GpuState&, std::uint32_t) {
    *sessions = *frames_per_second = *latency_us = 0;
    return kSuccess;
  });
}
nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned int* count, void*) {
  return gpu_emulator::get(device, count, [](const GpuState&) { return 0u; });
}
