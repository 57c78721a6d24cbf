#include "nvml/board.h"

// Calls about errors of the memory: ECC counters, rows remapped (Ampere and later), pages retired
// (before).

using gpu_emulator::board;
using gpu_emulator::GpuState;
using gpu_emulator::kInsufficientSize;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kNotSupported;
using gpu_emulator::kSuccess;
using gpu_emulator::kUninitialized;
using gpu_emulator::RetiredPage;
using gpu_emulator::Support;
using gpu_emulator::with_gpu;

namespace {

constexpr unsigned int kLastErrorType = 1;    // corrected, uncorrected
constexpr unsigned int kLastCounterType = 1;  // since the driver was loaded, since ever

unsigned long long errors(const GpuState& gpu, unsigned int counter_type, unsigned int error_type) {
  return gpu.ecc_errors[counter_type][error_type].load(std::memory_order_relaxed);
}

// Injected errors are of the device memory; the other places stay without.
template <class Answer>
nvmlReturn_t with_ecc(nvmlDevice_t device, const void* out, unsigned int error_type,
                      unsigned int counter_type, Answer answer) {
  if (board() == nullptr) return kUninitialized;
  if (out == nullptr || error_type > kLastErrorType || counter_type > kLastCounterType) {
    return kInvalidArgument;
  }
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (gpu.ecc != Support::kOn) return kNotSupported;
    return answer(gpu);
  });
}

bool has_location(const GpuState& gpu, unsigned int location) {
  // nvmlMemoryLocation_t
  constexpr unsigned int kL1 = 0;
  constexpr unsigned int kL2 = 1;
  constexpr unsigned int kDram = 2;
  constexpr unsigned int kRegisterFile = 3;
  constexpr unsigned int kSram = 7;
  if (location == kDram) return true;
  if (gpu.architecture >= gpu_emulator::kAmpere) return location == kSram;
  return location == kL1 || location == kL2 || location == kRegisterFile;
}

template <class Answer>
nvmlReturn_t with_retirement(nvmlDevice_t device, Answer answer) {
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (gpu.remap_banks != 0) return kNotSupported;
    return answer(gpu);
  });
}

nvmlReturn_t list_pages(nvmlDevice_t device, unsigned int cause, unsigned int* count,
                        unsigned long long* addresses, unsigned long long* times) {
  constexpr unsigned int kLastCause = 1;
  if (board() == nullptr) return kUninitialized;
  if (count == nullptr || cause > kLastCause) return kInvalidArgument;
  return with_retirement(device, [&](const GpuState& gpu) {
    const unsigned int capacity = addresses == nullptr ? 0 : *count;
    unsigned int found = 0;
    const std::uint32_t entered = gpu.retired_count.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < entered && i < gpu_emulator::kMaxRetiredPages; ++i) {
      const RetiredPage& page = gpu.retired_pages[i];
      if (page.cause.load(std::memory_order_relaxed) != cause) continue;
      if (found < capacity) {
        addresses[found] = page.address.load(std::memory_order_relaxed);
        if (times != nullptr) times[found] = page.at_us.load(std::memory_order_relaxed);
      }
      ++found;
    }
    *count = found;
    return found > capacity ? kInsufficientSize : kSuccess;
  });
}

}  // namespace

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned int* current,
                                  unsigned int* pending) {
  if (board() == nullptr) return kUninitialized;
  if (current == nullptr || pending == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (gpu.ecc == Support::kUnsupported) return kNotSupported;
    *current = gpu.ecc == Support::kOn ? 1 : 0;
    *pending = gpu_emulator::ecc_after_reset(gpu) == Support::kOn ? 1 : 0;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetDefaultEccMode(nvmlDevice_t device, unsigned int* mode) {
  if (board() == nullptr) return kUninitialized;
  if (mode == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (gpu.ecc == Support::kUnsupported) return kNotSupported;
    *mode = 1;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned int error_type,
                                         unsigned int counter_type, unsigned long long* count) {
  return with_ecc(device, count, error_type, counter_type, [&](const GpuState& gpu) {
    *count = errors(gpu, counter_type, error_type);
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned int error_type,
                                             unsigned int counter_type, unsigned int location,
                                             unsigned long long* count) {
  constexpr unsigned int kLastLocation = 7;
  if (location > kLastLocation) return board() == nullptr ? kUninitialized : kInvalidArgument;
  return with_ecc(device, count, error_type, counter_type, [&](const GpuState& gpu) {
    constexpr unsigned int kDram = 2;
    if (!has_location(gpu, location)) return kNotSupported;
    *count = location == kDram ? errors(gpu, counter_type, error_type) : 0;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, unsigned int error_type,
                                            unsigned int counter_type,
                                            gpu_emulator::EccErrorCounts* counts) {
  return with_ecc(device, counts, error_type, counter_type, [&](const GpuState& gpu) {
    *counts = {0, 0, errors(gpu, counter_type, error_type), 0};
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device,
                                             gpu_emulator::EccSramErrorStatus* status) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  return gpu_emulator::fill_versioned(device, status, 1, [&](const GpuState& gpu) {
    if (gpu.ecc != Support::kOn || gpu.architecture < gpu_emulator::kAmpere) return kNotSupported;
    const unsigned int version = status->version;
    *status = {};
    status->version = version;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int* corrected,
                                       unsigned int* uncorrected, unsigned int* is_pending,
                                       unsigned int* has_failed) {
  if (board() == nullptr) return kUninitialized;
  if (corrected == nullptr || uncorrected == nullptr || is_pending == nullptr ||
      has_failed == nullptr) {
    return kInvalidArgument;
  }
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (gpu.remap_banks == 0) return kNotSupported;
    *corrected = gpu.remapped_rows[gpu_emulator::kEccCorrected].load(std::memory_order_relaxed);
    *uncorrected = gpu.remapped_rows[gpu_emulator::kEccUncorrected].load(std::memory_order_relaxed);
    *is_pending = gpu.remap_pending.load(std::memory_order_relaxed);
    *has_failed = gpu.remap_failed.load(std::memory_order_relaxed);
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device,
                                               gpu_emulator::RowRemapperHistogram* histogram) {
  if (board() == nullptr) return kUninitialized;
  if (histogram == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (gpu.remap_banks == 0) return kNotSupported;
    // Each remapped row lies in a bank of its own, which then has nearly all of its spare rows.
    std::uint32_t used = 0;
    for (const auto& rows : gpu.remapped_rows) used += rows.load(std::memory_order_relaxed);
    if (used > gpu.remap_banks) used = gpu.remap_banks;
    *histogram = {gpu.remap_banks - used, used, 0, 0, 0};
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, unsigned int cause, unsigned int* count,
                                       unsigned long long* addresses) {
  return list_pages(device, cause, count, addresses, nullptr);
}

nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, unsigned int cause,
                                          unsigned int* count, unsigned long long* addresses,
                                          unsigned long long* times) {
  return list_pages(device, cause, count, addresses, times);
}

nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, unsigned int* is_pending) {
  if (board() == nullptr) return kUninitialized;
  if (is_pending == nullptr) return kInvalidArgument;
  return with_retirement(device, [&](const GpuState& gpu) {
    *is_pending = gpu.retirement_pending.load(std::memory_order_relaxed);
    return kSuccess;
  });
}
