#include <unistd.h>

#include "nvml/board.h"

// MIG as it can be asked about while it is off: mode, sizes, places. Nothing is partitioned here.

using gpu_emulator::board;
using gpu_emulator::copy_text;
using gpu_emulator::get;
using gpu_emulator::GpuInstancePlacement;
using gpu_emulator::GpuInstanceProfileInfo;
using gpu_emulator::GpuInstanceProfileInfoV2;
using gpu_emulator::GpuInstanceProfileInfoV3;
using gpu_emulator::GpuState;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kNotSupported;
using gpu_emulator::kSuccess;
using gpu_emulator::kUninitialized;
using gpu_emulator::MigProfile;
using gpu_emulator::Support;
using gpu_emulator::with_gpu;

namespace {

constexpr unsigned int kMaxInstances = 7;
constexpr unsigned int kProfiles = 0x12;  // NVML_GPU_INSTANCE_PROFILE_COUNT

// The profile that matches; null when the GPU has none such.
template <class Matches>
const MigProfile* find_profile(const GpuState& gpu, Matches matches) {
  for (std::uint32_t i = 0; i < gpu.mig_profile_count && i < gpu_emulator::kMaxMigProfiles; ++i) {
    if (matches(gpu.mig_profiles[i])) return &gpu.mig_profiles[i];
  }
  return nullptr;
}

// The fields that all versions of the structure have.
template <class Info>
void fill(const MigProfile& profile, Info* info) {
  info->id = profile.id;
  info->slice_count = profile.slices;
  info->instance_count = profile.instances;
  info->multiprocessor_count = profile.multiprocessors;
  info->copy_engine_count = profile.copy_engines;
  info->decoder_count = profile.decoders;
  info->encoder_count = 0;
  info->jpeg_count = profile.jpeg_engines;
  info->ofa_count = profile.ofa_engines;
  info->memory_size_mib = profile.memory_mib;
}

template <class Fill>
nvmlReturn_t with_profile(const GpuState& gpu, unsigned int number, Fill fill_info) {
  if (number >= kProfiles) return kInvalidArgument;
  const MigProfile* profile =
      find_profile(gpu, [&](const MigProfile& one) { return one.profile == number; });
  if (profile == nullptr) return kNotSupported;
  return fill_info(*profile);
}

// Returns a name in the manner of nvidia-smi, "MIG 1g.10gb".
template <class Info>
nvmlReturn_t fill_named(const MigProfile& profile, Info* info) {
  constexpr char kPrefix[] = "MIG ";
  constexpr unsigned int kLength = sizeof kPrefix - 1;
  fill(profile, info);
  for (unsigned int i = 0; i < kLength; ++i) info->name[i] = kPrefix[i];
  return copy_text(profile.name, info->name + kLength, sizeof info->name - kLength);
}

// Calls on instances or their handles, of which there are none: not found while MIG is on.
nvmlReturn_t without_instances(nvmlDevice_t device, const void* out) {
  if (board() == nullptr) return kUninitialized;
  if (out == nullptr) return kInvalidArgument;
  return with_gpu(device, [](const GpuState& gpu, std::uint32_t) {
    return gpu.mig == Support::kOn ? gpu_emulator::kNotFound : kNotSupported;
  });
}

// Calls on a handle that must be an instance's; the GPU's own is none.
nvmlReturn_t not_of_gpu(nvmlDevice_t device, const void* out) {
  if (board() == nullptr) return kUninitialized;
  if (out == nullptr) return kInvalidArgument;
  return with_gpu(device, [](const GpuState& gpu, std::uint32_t) {
    return gpu.mig == Support::kOn ? kInvalidArgument : kNotSupported;
  });
}

}  // namespace

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* current,
                                  unsigned int* pending) {
  if (board() == nullptr) return kUninitialized;
  if (current == nullptr || pending == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (gpu.mig == Support::kUnsupported) return kNotSupported;
    *current = *pending = gpu.mig == Support::kOn ? 1 : 0;
    return kSuccess;
  });
}

// Answers zero even if MIG could be switched on.
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int* count) {
  return get(device, count,
             [](const GpuState& gpu) { return gpu.mig == Support::kOn ? gpu.max_mig_devices : 0; });
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int* is_mig) {
  return get(device, is_mig, [](const GpuState&) { return 0u; });
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                 nvmlDevice_t* mig_device) {
  if (board() != nullptr && index >= kMaxInstances) return kInvalidArgument;
  return without_instances(device, static_cast<const void*>(mig_device));
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig_device,
                                                          nvmlDevice_t* device) {
  return not_of_gpu(mig_device, static_cast<const void*>(device));
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int* id) {
  return not_of_gpu(device, id);
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int* id) {
  return not_of_gpu(device, id);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int, void** instance) {
  return without_instances(device, static_cast<const void*>(instance));
}

nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int profile_id, void**,
                                       unsigned int* count) {
  if (board() == nullptr) return kUninitialized;
  if (count == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (gpu.mig != Support::kOn) return kNotSupported;
    if (find_profile(gpu, [&](const MigProfile& one) { return one.id == profile_id; }) == nullptr) {
      return kInvalidArgument;
    }
    *count = 0;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int profile,
                                                 GpuInstanceProfileInfo* info) {
  if (board() == nullptr) return kUninitialized;
  if (info == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    return with_profile(gpu, profile, [&](const MigProfile& found) {
      *info = {};
      fill(found, info);
      return kSuccess;
    });
  });
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int profile,
                                                  GpuInstanceProfileInfoV2* info) {
  if (board() == nullptr) return kUninitialized;
  if (info == nullptr) return kInvalidArgument;
  if (info->version == gpu_emulator::version_of<GpuInstanceProfileInfoV3>(3)) {
    auto* v3 = reinterpret_cast<GpuInstanceProfileInfoV3*>(info);
    return gpu_emulator::fill_versioned(device, v3, 3, [&](const GpuState& gpu) {
      return with_profile(gpu, profile, [&](const MigProfile& found) {
        v3->capabilities = 0;
        return fill_named(found, v3);
      });
    });
  }
  return gpu_emulator::fill_versioned(device, info, 2, [&](const GpuState& gpu) {
    return with_profile(gpu, profile, [&](const MigProfile& found) {
      info->is_p2p_supported = 0;
      return fill_named(found, info);
    });
  });
}

// Answers while MIG is off too, to root.
nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device,
                                                           unsigned int profile_id,
                                                           GpuInstancePlacement* placements,
                                                           unsigned int* count) {
  if (board() == nullptr) return kUninitialized;
  if (count == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (gpu.mig == Support::kUnsupported) return kNotSupported;
    if (geteuid() != 0) return gpu_emulator::kNoPermission;
    const MigProfile* profile =
        find_profile(gpu, [&](const MigProfile& one) { return one.id == profile_id; });
    if (profile == nullptr) return kInvalidArgument;
    unsigned int starts[32];
    unsigned int found = 0;
    for (unsigned int start = 0; start < 32; ++start) {
      if ((profile->starts >> start & 1) != 0) starts[found++] = start;
    }
    if (placements == nullptr) {
      *count = found;
      return kSuccess;
    }
    return gpu_emulator::list_of(count, placements, found,
                                 [&](unsigned int i, GpuInstancePlacement* out) {
                                   *out = {starts[i], profile->memory_slices};
                                 });
  });
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device,
                                                        unsigned int profile_id,
                                                        GpuInstancePlacement* placements,
                                                        unsigned int* count) {
  return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, profile_id, placements, count);
}

// Nothing is taken yet.
nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int profile_id,
                                                       unsigned int* count) {
  if (board() == nullptr) return kUninitialized;
  if (count == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (gpu.mig != Support::kOn) return kNotSupported;
    const MigProfile* profile =
        find_profile(gpu, [&](const MigProfile& one) { return one.id == profile_id; });
    if (profile == nullptr) return kInvalidArgument;
    *count = profile->instances;
    return kSuccess;
  });
}
