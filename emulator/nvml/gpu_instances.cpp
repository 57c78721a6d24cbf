#include "nvml/board.h"

// GPU instances: their profiles, the places where they may lie, and the making and destroying of
// them. board_mig.h has the rules.

using gpu_emulator::board;
using gpu_emulator::change_instances;
using gpu_emulator::copy_text;
using gpu_emulator::Device;
using gpu_emulator::GpuInstanceInfo;
using gpu_emulator::GpuInstancePlacement;
using gpu_emulator::GpuInstanceProfileInfo;
using gpu_emulator::GpuInstanceProfileInfoV2;
using gpu_emulator::GpuInstanceProfileInfoV3;
using gpu_emulator::GpuState;
using gpu_emulator::has_mig;
using gpu_emulator::is_mig_on;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kNoId;
using gpu_emulator::kNoPermission;
using gpu_emulator::kNotFound;
using gpu_emulator::kNotSupported;
using gpu_emulator::kSuccess;
using gpu_emulator::kUninitialized;
using gpu_emulator::may_configure_mig;
using gpu_emulator::MigProfile;
using gpu_emulator::profile_with_id;
using gpu_emulator::with_device;
using gpu_emulator::with_gpu;

namespace {

constexpr unsigned int kGpuInstanceProfiles = 0x12;  // NVML_GPU_INSTANCE_PROFILE_COUNT

// The fields that all versions of the structure have.
template <class Info>
void fill_profile(const MigProfile& profile, Info* info) {
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

// By NVML's number of profiles.
const MigProfile* profile_numbered(const GpuState& gpu, unsigned int number) {
  for (std::uint32_t i = 0; i < gpu_emulator::mig_profile_count(gpu); ++i) {
    if (gpu.mig_profiles[i].profile == number) return &gpu.mig_profiles[i];
  }
  return nullptr;
}

// Returns a name in the manner of nvidia-smi, "MIG 1g.10gb".
template <class Info>
nvmlReturn_t fill_named_profile(const MigProfile& profile, Info* info) {
  constexpr char kPrefix[] = "MIG ";
  constexpr unsigned int kLength = sizeof kPrefix - 1;
  fill_profile(profile, info);
  for (unsigned int i = 0; i < kLength; ++i) info->name[i] = kPrefix[i];
  return copy_text(profile.name, info->name + kLength, sizeof info->name - kLength);
}

// Fills the structure of the version that the caller says. `find(gpu)` returns the profile; without
// one the answer is `without`.
template <class Find>
nvmlReturn_t fill_any_version(nvmlDevice_t device, GpuInstanceProfileInfoV2* info, Find find) {
  if (board() == nullptr) return kUninitialized;
  if (info == nullptr) return kInvalidArgument;
  const auto fill = [&](auto* out) {
    return [&find, out](const GpuState& gpu) -> nvmlReturn_t {
      const MigProfile* profile = nullptr;
      const nvmlReturn_t found = find(gpu, &profile);
      return found == kSuccess ? fill_named_profile(*profile, out) : found;
    };
  };
  if (info->version == gpu_emulator::version_of<GpuInstanceProfileInfoV3>(3)) {
    auto* v3 = reinterpret_cast<GpuInstanceProfileInfoV3*>(info);
    v3->capabilities = 0;
    return gpu_emulator::fill_versioned(device, v3, 3, fill(v3));
  }
  if (info->version == gpu_emulator::version_of<GpuInstanceProfileInfoV2>(2)) {
    info->is_p2p_supported = 0;
  }
  return gpu_emulator::fill_versioned(device, info, 2, fill(info));
}

nvmlReturn_t find_numbered(const GpuState& gpu, unsigned int number, const MigProfile** out) {
  if (number >= kGpuInstanceProfiles) return kInvalidArgument;
  *out = profile_numbered(gpu, number);
  return *out == nullptr ? kNotSupported : kSuccess;
}

// Calls of a privileged user on a GPU with MIG on: `answer(gpu, index)`.
template <class Answer>
nvmlReturn_t with_mig_gpu(nvmlDevice_t device, const void* out, Answer answer) {
  if (board() == nullptr) return kUninitialized;
  if (out == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t index) -> nvmlReturn_t {
    if (!is_mig_on(gpu)) return kNotSupported;
    if (!may_configure_mig()) return kNoPermission;
    return answer(gpu, index);
  });
}

nvmlReturn_t create_gpu_instance(nvmlDevice_t device, unsigned int profile_id, std::uint32_t start,
                                 nvmlGpuInstance_t* instance) {
  return with_mig_gpu(device, static_cast<const void*>(instance),
                      [&](const GpuState& gpu, std::uint32_t index) {
                        if (profile_with_id(gpu, profile_id) == nullptr) return kInvalidArgument;
                        std::uint32_t id = 0;
                        const nvmlReturn_t made = change_instances(index, [&](GpuState& to) {
                          if (!is_mig_on(to)) return gpu_emulator::MigResult::kNotFound;
                          return gpu_emulator::create_gpu_instance(
                              to, *profile_with_id(to, profile_id), start, &id);
                        });
                        if (made == kSuccess)
                          *instance = gpu_emulator::handle_of_gpu_instance(index, id);
                        return made;
                      });
}

}  // namespace

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned int profile,
                                                 GpuInstanceProfileInfo* info) {
  if (board() == nullptr) return kUninitialized;
  if (info == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    const MigProfile* found = nullptr;
    if (const nvmlReturn_t refused = find_numbered(gpu, profile, &found); refused != kSuccess) {
      return refused;
    }
    *info = {};
    fill_profile(*found, info);
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned int profile,
                                                  GpuInstanceProfileInfoV2* info) {
  return fill_any_version(device, info, [&](const GpuState& gpu, const MigProfile** out) {
    return find_numbered(gpu, profile, out);
  });
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned int profile_id,
                                                      GpuInstanceProfileInfoV2* info) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  return fill_any_version(device, info, [&](const GpuState& gpu, const MigProfile** out) {
    if (!has_mig(gpu)) return kNotSupported;
    *out = profile_with_id(gpu, profile_id);
    return *out == nullptr ? kInvalidArgument : kSuccess;
  });
}

// Answers while MIG is off, too, and whatever is taken.
nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device,
                                                           unsigned int profile_id,
                                                           GpuInstancePlacement* placements,
                                                           unsigned int* count) {
  if (board() == nullptr) return kUninitialized;
  if (count == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (!has_mig(gpu)) return kNotSupported;
    if (!may_configure_mig()) return kNoPermission;
    const MigProfile* profile = profile_with_id(gpu, profile_id);
    if (profile == nullptr) return kInvalidArgument;
    return gpu_emulator::list_of_starts(profile->starts, profile->memory_slices, placements, count);
  });
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device,
                                                        unsigned int profile_id,
                                                        GpuInstancePlacement* placements,
                                                        unsigned int* count) {
  return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, profile_id, placements, count);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned int profile_id,
                                                       unsigned int* count) {
  return with_mig_gpu(device, count, [&](const GpuState& gpu, std::uint32_t) {
    const MigProfile* profile = profile_with_id(gpu, profile_id);
    if (profile == nullptr) return kInvalidArgument;
    *count = gpu_emulator::remaining_instances(gpu, *profile);
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned int profile_id,
                                         nvmlGpuInstance_t* instance) {
  return create_gpu_instance(device, profile_id, kNoId, instance);
}

nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned int profile_id,
                                                      const GpuInstancePlacement* placement,
                                                      nvmlGpuInstance_t* instance) {
  if (board() == nullptr) return kUninitialized;
  if (placement == nullptr) return kInvalidArgument;
  return with_mig_gpu(
      device, static_cast<const void*>(instance), [&](const GpuState& gpu, std::uint32_t) {
        const MigProfile* profile = profile_with_id(gpu, profile_id);
        const bool is_size_right = profile != nullptr && placement->size == profile->memory_slices;
        if (!is_size_right || placement->start == kNoId) return kInvalidArgument;
        return create_gpu_instance(device, profile_id, placement->start, instance);
      });
}

nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t instance) {
  return with_device(instance, [&](const GpuState&, const Device& device) {
    if (!may_configure_mig()) return kNoPermission;
    return change_instances(device.gpu, [&](GpuState& gpu) {
      return gpu_emulator::destroy_gpu_instance(gpu, device.instance.gpu_instance);
    });
  });
}

nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned int profile_id,
                                       nvmlGpuInstance_t* instances, unsigned int* count) {
  return with_mig_gpu(device, count, [&](const GpuState& gpu, std::uint32_t index) {
    const MigProfile* profile = profile_with_id(gpu, profile_id);
    if (profile == nullptr) return kInvalidArgument;
    *count = 0;
    for (std::uint32_t i = 0; i < gpu_emulator::kMaxGpuInstances; ++i) {
      if (gpu_emulator::profile_of(gpu, i) != profile) continue;
      if (instances == nullptr) return kInvalidArgument;
      instances[(*count)++] = gpu_emulator::handle_of_gpu_instance(index, i);
    }
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned int id,
                                          nvmlGpuInstance_t* instance) {
  return with_mig_gpu(device, static_cast<const void*>(instance),
                      [&](const GpuState& gpu, std::uint32_t index) {
                        if (gpu_emulator::profile_of(gpu, id) == nullptr) return kNotFound;
                        *instance = gpu_emulator::handle_of_gpu_instance(index, id);
                        return kSuccess;
                      });
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, GpuInstanceInfo* info) {
  if (board() == nullptr) return kUninitialized;
  if (info == nullptr) return kInvalidArgument;
  return with_device(instance, [&](const GpuState& gpu, const Device& device) {
    const std::uint32_t id = device.instance.gpu_instance;
    const MigProfile* profile = gpu_emulator::profile_of(gpu, id);
    if (profile == nullptr) return kInvalidArgument;
    *info = {gpu_emulator::handle_of(device.gpu),
             id,
             profile->id,
             {gpu_emulator::value_of(gpu.gpu_instances[id].start), profile->memory_slices}};
    return kSuccess;
  });
}
