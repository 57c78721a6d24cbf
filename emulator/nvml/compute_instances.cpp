#include <stdio.h>

#include "nvml/board.h"

// Compute instances: partitions of the compute of a GPU instance. board_mig.h has the rules.

using gpu_emulator::board;
using gpu_emulator::change_instances;
using gpu_emulator::compute_slices_of;
using gpu_emulator::ComputeInstanceInfo;
using gpu_emulator::ComputeInstancePlacement;
using gpu_emulator::ComputeInstanceProfileInfo;
using gpu_emulator::ComputeInstanceProfileInfoV2;
using gpu_emulator::ComputeInstanceProfileInfoV3;
using gpu_emulator::Device;
using gpu_emulator::GpuState;
using gpu_emulator::has_compute_profile;
using gpu_emulator::InstanceId;
using gpu_emulator::kArgumentVersionMismatch;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kMaxComputeInstances;
using gpu_emulator::kNoId;
using gpu_emulator::kNotFound;
using gpu_emulator::kNotSupported;
using gpu_emulator::kSuccess;
using gpu_emulator::kUninitialized;
using gpu_emulator::may_configure_mig;
using gpu_emulator::MigProfile;
using gpu_emulator::version_of;
using gpu_emulator::with_device;

namespace {

// The slices of a profile of compute instances, NVML_COMPUTE_INSTANCE_PROFILE_*, which is its id as
// well. The last one is a second form of one slice, which no board has.
constexpr unsigned int kSlicesOfProfiles[] = {1, 2, 3, 4, 7, 8, 6, 0};
constexpr unsigned int kComputeProfiles = sizeof kSlicesOfProfiles / sizeof kSlicesOfProfiles[0];

unsigned int profile_of_slices(unsigned int slices) {
  unsigned int profile = 0;
  while (profile + 1 < kComputeProfiles && kSlicesOfProfiles[profile] != slices) ++profile;
  return profile;
}

// A call on a GPU instance: `answer(gpu, device, profile of the GPU instance)`.
template <class Answer>
nvmlReturn_t with_gpu_instance(nvmlGpuInstance_t instance, const void* out, Answer answer) {
  if (board() == nullptr) return kUninitialized;
  if (out == nullptr) return kInvalidArgument;
  return with_device(instance, [&](const GpuState& gpu, const Device& device) -> nvmlReturn_t {
    const MigProfile* profile = gpu_emulator::profile_of(gpu, device.instance.gpu_instance);
    return profile == nullptr ? kInvalidArgument : answer(gpu, device, *profile);
  });
}

// The same with the slices of a profile that the GPU instance must have.
template <class Answer>
nvmlReturn_t with_compute_profile(nvmlGpuInstance_t instance, unsigned int profile_id,
                                  const void* out, Answer answer) {
  return with_gpu_instance(
      instance, out,
      [&](const GpuState& gpu, const Device& device, const MigProfile& owner) -> nvmlReturn_t {
        if (profile_id >= kComputeProfiles) return kInvalidArgument;
        const unsigned int slices = kSlicesOfProfiles[profile_id];
        if (!has_compute_profile(owner, slices)) return kNotSupported;
        return answer(gpu, device, owner, slices);
      });
}

unsigned int count_of_bits(std::uint32_t bits) {
  unsigned int count = 0;
  for (; bits != 0; bits &= bits - 1) ++count;
  return count;
}

// The fields that all versions of the structure have.
template <class Info>
void fill_compute_profile(const GpuState& gpu, const MigProfile& owner, unsigned int slices,
                          Info* info) {
  info->id = profile_of_slices(slices);
  info->slice_count = slices;
  info->instance_count = count_of_bits(gpu_emulator::compute_starts(owner, slices));
  info->multiprocessor_count = gpu_emulator::multiprocessors_of(gpu, owner, slices);
  info->shared_copy_engine_count = owner.copy_engines;
  info->shared_decoder_count = owner.decoders;
  info->shared_encoder_count = 0;
  info->shared_jpeg_count = owner.jpeg_engines;
  info->shared_ofa_count = owner.ofa_engines;
}

// "MIG 1c.3g.40gb"
template <class Info>
void fill_named_compute_profile(const GpuState& gpu, const MigProfile& owner, unsigned int slices,
                                Info* info) {
  fill_compute_profile(gpu, owner, slices, info);
  char name[gpu_emulator::kMigNameBytes];
  gpu_emulator::write_mig_name(owner, slices, name);
  snprintf(info->name, sizeof info->name, "MIG %s", name);
}

// Engines of a GPU instance are always shared by its compute instances.
constexpr unsigned int kSharedEngines = 0;

nvmlReturn_t create_compute_instance(nvmlGpuInstance_t instance, unsigned int profile_id,
                                     std::uint32_t start, nvmlComputeInstance_t* compute_instance) {
  return with_compute_profile(
      instance, profile_id, static_cast<const void*>(compute_instance),
      [&](const GpuState&, const Device& device, const MigProfile&,
          unsigned int slices) -> nvmlReturn_t {
        if (!may_configure_mig()) return gpu_emulator::kNoPermission;
        InstanceId id = device.instance;
        const nvmlReturn_t made = change_instances(device.gpu, [&](GpuState& to) {
          return gpu_emulator::create_compute_instance(to, id.gpu_instance, slices, start,
                                                       &id.compute_instance);
        });
        if (made == kSuccess) {
          *compute_instance = gpu_emulator::handle_of_compute_instance(device.gpu, id);
        }
        return made;
      });
}

}  // namespace

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t instance,
                                                          unsigned int profile,
                                                          unsigned int engine_profile,
                                                          ComputeInstanceProfileInfo* info) {
  if (board() != nullptr && engine_profile != kSharedEngines) return kInvalidArgument;
  return with_compute_profile(
      instance, profile, info,
      [&](const GpuState& gpu, const Device&, const MigProfile& owner, unsigned int slices) {
        fill_compute_profile(gpu, owner, slices, info);
        return kSuccess;
      });
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t instance,
                                                           unsigned int profile,
                                                           unsigned int engine_profile,
                                                           ComputeInstanceProfileInfoV2* info) {
  if (board() != nullptr && engine_profile != kSharedEngines) return kInvalidArgument;
  return with_compute_profile(
      instance, profile, info,
      [&](const GpuState& gpu, const Device&, const MigProfile& owner, unsigned int slices) {
        if (info->version == version_of<ComputeInstanceProfileInfoV3>(3)) {
          auto* v3 = reinterpret_cast<ComputeInstanceProfileInfoV3*>(info);
          fill_named_compute_profile(gpu, owner, slices, v3);
          v3->capabilities = 0;
          return kSuccess;
        }
        if (info->version != version_of<ComputeInstanceProfileInfoV2>(2)) {
          return kArgumentVersionMismatch;
        }
        fill_named_compute_profile(gpu, owner, slices, info);
        return kSuccess;
      });
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t instance,
                                                                unsigned int profile_id,
                                                                unsigned int* count) {
  return with_compute_profile(
      instance, profile_id, count,
      [&](const GpuState& gpu, const Device& device, const MigProfile&, unsigned int slices) {
        *count = gpu_emulator::remaining_compute(gpu, device.instance.gpu_instance, slices);
        return kSuccess;
      });
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(
    nvmlGpuInstance_t instance, unsigned int profile_id, ComputeInstancePlacement* placements,
    unsigned int* count) {
  return with_compute_profile(
      instance, profile_id, count,
      [&](const GpuState&, const Device&, const MigProfile& owner, unsigned int slices) {
        const std::uint32_t starts = gpu_emulator::compute_starts(owner, slices);
        return gpu_emulator::list_of_starts(starts, slices, placements, count);
      });
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t instance,
                                                  unsigned int profile_id,
                                                  nvmlComputeInstance_t* compute_instance) {
  return create_compute_instance(instance, profile_id, kNoId, compute_instance);
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(
    nvmlGpuInstance_t instance, unsigned int profile_id, const ComputeInstancePlacement* placement,
    nvmlComputeInstance_t* compute_instance) {
  if (board() == nullptr) return kUninitialized;
  if (placement == nullptr || placement->start == kNoId || profile_id >= kComputeProfiles ||
      placement->size != kSlicesOfProfiles[profile_id]) {
    return kInvalidArgument;
  }
  return create_compute_instance(instance, profile_id, placement->start, compute_instance);
}

nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t instance) {
  return with_device(instance, [&](const GpuState&, const Device& device) {
    if (!may_configure_mig()) return gpu_emulator::kNoPermission;
    return change_instances(device.gpu, [&](GpuState& gpu) {
      return gpu_emulator::destroy_compute_instance(gpu, device.instance);
    });
  });
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t instance, unsigned int profile_id,
                                                nvmlComputeInstance_t* instances,
                                                unsigned int* count) {
  return with_compute_profile(instance, profile_id, count,
                              [&](const GpuState& gpu, const Device& device, const MigProfile&,
                                  unsigned int slices) -> nvmlReturn_t {
                                *count = 0;
                                for (std::uint32_t i = 0; i < kMaxComputeInstances; ++i) {
                                  const InstanceId id{device.instance.gpu_instance, i};
                                  if (compute_slices_of(gpu, id) != slices) continue;
                                  if (instances == nullptr) return kInvalidArgument;
                                  instances[(*count)++] =
                                      gpu_emulator::handle_of_compute_instance(device.gpu, id);
                                }
                                return kSuccess;
                              });
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t instance, unsigned int id,
                                                   nvmlComputeInstance_t* compute_instance) {
  return with_gpu_instance(instance, static_cast<const void*>(compute_instance),
                           [&](const GpuState& gpu, const Device& device, const MigProfile&) {
                             const InstanceId found{device.instance.gpu_instance, id};
                             if (compute_slices_of(gpu, found) == 0) return kNotFound;
                             *compute_instance =
                                 gpu_emulator::handle_of_compute_instance(device.gpu, found);
                             return kSuccess;
                           });
}

nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t instance,
                                           ComputeInstanceInfo* info) {
  if (board() == nullptr) return kUninitialized;
  if (info == nullptr) return kInvalidArgument;
  return with_device(instance, [&](const GpuState& gpu, const Device& device) {
    const InstanceId& id = device.instance;
    const std::uint32_t slices = compute_slices_of(gpu, id);
    const auto& found = gpu.gpu_instances[id.gpu_instance].compute[id.compute_instance];
    *info = {gpu_emulator::handle_of(device.gpu),
             gpu_emulator::handle_of_gpu_instance(device.gpu, id.gpu_instance),
             id.compute_instance,
             profile_of_slices(slices),
             {gpu_emulator::value_of(found.start), slices}};
    return kSuccess;
  });
}

nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t instance, ComputeInstanceInfo* info) {
  return nvmlComputeInstanceGetInfo_v2(instance, info);
}
