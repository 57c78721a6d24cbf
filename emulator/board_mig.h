#pragma once

#include <cstdint>
#include <cstring>

#include "board_readings.h"

// MIG on an emulated board: which instances there are, and which may be made where. Header only and
// without allocation, because the emulated library and gpu-emulator share it. A caller that changes
// something holds the file's lock.

namespace gpu_emulator {

inline bool has_mig(const GpuState& gpu) {
  return gpu.mig != Support::kUnsupported;
}
inline bool is_mig_on(const GpuState& gpu) {
  return has_mig(gpu) && static_cast<Support>(value_of(gpu.mig_mode)) == Support::kOn;
}
inline bool is_mig_on_after_reset(const GpuState& gpu) {
  return has_mig(gpu) && static_cast<Support>(value_of(gpu.mig_pending)) == Support::kOn;
}

inline std::uint32_t mig_profile_count(const GpuState& gpu) {
  return gpu.mig_profile_count < kMaxMigProfiles ? gpu.mig_profile_count : kMaxMigProfiles;
}

// The profile that nvidia-smi calls so; null if the GPU has none such.
inline const MigProfile* profile_with_id(const GpuState& gpu, std::uint32_t id) {
  for (std::uint32_t i = 0; i < mig_profile_count(gpu); ++i) {
    if (gpu.mig_profiles[i].id == id) return &gpu.mig_profiles[i];
  }
  return nullptr;
}
inline const MigProfile* profile_called(const GpuState& gpu, const char* name) {
  for (std::uint32_t i = 0; i < mig_profile_count(gpu); ++i) {
    if (std::strcmp(gpu.mig_profiles[i].name, name) == 0) return &gpu.mig_profiles[i];
  }
  return nullptr;
}

// The profile of a GPU instance; null if there is no such instance.
inline const MigProfile* profile_of(const GpuState& gpu, std::uint32_t gpu_instance) {
  if (!is_mig_on(gpu) || gpu_instance >= kMaxGpuInstances) return nullptr;
  const std::uint32_t number =
      gpu.gpu_instances[gpu_instance].profile.load(std::memory_order_acquire);
  return number == 0 || number > mig_profile_count(gpu) ? nullptr : &gpu.mig_profiles[number - 1];
}

// The compute slices of a compute instance; 0 if there is no such instance.
inline std::uint32_t compute_slices_of(const GpuState& gpu, const InstanceId& id) {
  const MigProfile* profile = profile_of(gpu, id.gpu_instance);
  if (profile == nullptr || id.compute_instance >= kMaxComputeInstances) return 0;
  const std::uint32_t slices =
      gpu.gpu_instances[id.gpu_instance].compute[id.compute_instance].slices.load(
          std::memory_order_acquire);
  return slices <= profile->slices ? slices : 0;
}

inline bool is_whole_gpu(const InstanceId& id) {
  return id.gpu_instance == kNoId;
}

// Whether there is such an instance; the whole GPU always is.
inline bool is_there(const GpuState& gpu, const InstanceId& id) {
  if (is_whole_gpu(id)) return true;
  return id.compute_instance == kNoId ? profile_of(gpu, id.gpu_instance) != nullptr
                                      : compute_slices_of(gpu, id) != 0;
}

// Calls `visit(InstanceId)` for each compute instance, in the order in which NVML numbers them,
// until it returns true.
template <class Visit>
void visit_compute_instances(const GpuState& gpu, Visit visit) {
  for (std::uint32_t i = 0; i < kMaxGpuInstances; ++i) {
    if (profile_of(gpu, i) == nullptr) continue;
    for (std::uint32_t k = 0; k < kMaxComputeInstances; ++k) {
      const InstanceId id{i, k};
      if (compute_slices_of(gpu, id) != 0 && visit(id)) return;
    }
  }
}

// Slices as bits: those from `start` on.
constexpr std::uint32_t slice_mask(std::uint32_t start, std::uint32_t size) {
  return size >= 32 || start >= 32 ? 0 : ((1u << size) - 1) << start;
}

inline std::uint32_t used_memory_slices(const GpuState& gpu) {
  std::uint32_t used = 0;
  for (std::uint32_t i = 0; i < kMaxGpuInstances; ++i) {
    const MigProfile* profile = profile_of(gpu, i);
    if (profile == nullptr) continue;
    used |= slice_mask(value_of(gpu.gpu_instances[i].start), profile->memory_slices);
  }
  return used;
}

// The memory slices and the compute slices that a GPU has: those of its largest profile.
inline std::uint32_t memory_slices_of(const GpuState& gpu) {
  std::uint32_t most = 1;
  for (std::uint32_t i = 0; i < mig_profile_count(gpu); ++i) {
    if (gpu.mig_profiles[i].memory_slices > most) most = gpu.mig_profiles[i].memory_slices;
  }
  return most;
}
inline std::uint32_t compute_slices_of(const GpuState& gpu) {
  std::uint32_t most = 1;
  for (std::uint32_t i = 0; i < mig_profile_count(gpu); ++i) {
    if (gpu.mig_profiles[i].slices > most) most = gpu.mig_profiles[i].slices;
  }
  return most;
}

// Profiles with the engines for pictures and optical flow, of which a GPU has one set.
inline bool has_media(const MigProfile& profile) {
  constexpr std::uint32_t kOneSlice = 7;
  constexpr std::uint32_t kTwoSlices = 8;
  return profile.profile == kOneSlice || profile.profile == kTwoSlices;
}

// How many more instances the count of the profile and the compute slices allow, wherever they lie.
inline std::uint32_t allowed_by_counts(const GpuState& gpu, const MigProfile& profile) {
  std::uint32_t same = 0;
  std::uint32_t slices = 0;
  bool is_media_taken = false;
  for (std::uint32_t i = 0; i < kMaxGpuInstances; ++i) {
    const MigProfile* other = profile_of(gpu, i);
    if (other == nullptr) continue;
    same += other == &profile ? 1 : 0;
    slices += other->slices;
    is_media_taken = is_media_taken || has_media(*other);
  }
  const std::uint32_t all = compute_slices_of(gpu);
  if (profile.slices == 0 || same >= profile.instances || slices > all) return 0;
  if (has_media(profile) && is_media_taken) return 0;
  const std::uint32_t by_compute = (all - slices) / profile.slices;
  const std::uint32_t by_count = profile.instances - same;
  return by_compute < by_count ? by_compute : by_count;
}

// How many more instances of the profile can be made.
inline std::uint32_t remaining_instances(const GpuState& gpu, const MigProfile& profile) {
  const std::uint32_t allowed = allowed_by_counts(gpu, profile);
  std::uint32_t used = used_memory_slices(gpu);
  std::uint32_t fitting = 0;
  for (std::uint32_t start = 0; start < 32 && fitting < allowed; ++start) {
    const std::uint32_t wanted = slice_mask(start, profile.memory_slices);
    if ((profile.starts >> start & 1) == 0 || (used & wanted) != 0) continue;
    used |= wanted;
    ++fitting;
  }
  return fitting;
}

// nvmlEventMigConfigChange
inline constexpr std::uint64_t kMigConfigChange = 0x100;

enum class MigResult { kDone, kBadPlacement, kNoRoom, kInUse, kNotFound, kFails };

// The driver's number of an instance: the node of the tree that halves the memory slices again and
// again. The whole GPU is 0, the halves are 1 and 2, and so on.
inline std::uint32_t gpu_instance_id(const GpuState& gpu, const MigProfile& profile,
                                     std::uint32_t start) {
  std::uint32_t first = 0;
  std::uint32_t size = memory_slices_of(gpu);
  for (; size > profile.memory_slices && size > 1; size /= 2) first = first * 2 + 1;
  return first + start / size;
}

// The order in which the driver tries the starts of an instance: a new GPU's seven single slices
// get the ids 13, 11, 12, 7, 8, 9 and 10.
inline constexpr std::uint32_t kOrderOfStarts[] = {6, 4, 5, 0, 1, 2, 3, 7};

inline bool may_start_at(const GpuState& gpu, const MigProfile& profile, std::uint32_t start) {
  return start < 32 && (profile.starts >> start & 1) != 0 &&
         (used_memory_slices(gpu) & slice_mask(start, profile.memory_slices)) == 0;
}

// Counts one failure down. Returns whether there was one.
inline bool takes_failure(std::atomic<std::uint32_t>& failures) {
  const std::uint32_t left = value_of(failures);
  if (left != 0) failures.store(left - 1, std::memory_order_relaxed);
  return left != 0;
}

// Makes a GPU instance of a profile of this GPU; `start` kNoId: where the driver likes it.
inline MigResult create_gpu_instance(GpuState& gpu, const MigProfile& profile, std::uint32_t start,
                                     std::uint32_t* id) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const bool is_chosen = start != kNoId;
  if (is_chosen && (start >= 32 || (profile.starts >> start & 1) == 0)) {
    return MigResult::kBadPlacement;
  }
  if (allowed_by_counts(gpu, profile) == 0) return MigResult::kNoRoom;
  for (const std::uint32_t each : kOrderOfStarts) {
    if (!is_chosen && start == kNoId && may_start_at(gpu, profile, each)) start = each;
  }
  if (!may_start_at(gpu, profile, start)) return MigResult::kNoRoom;
  if (takes_failure(gpu.failing_gpu_instances)) return MigResult::kFails;
  *id = gpu_instance_id(gpu, profile, start) % kMaxGpuInstances;
  GpuInstance& made = gpu.gpu_instances[*id];
  for (ComputeInstance& compute : made.compute) compute.slices.store(0, kRelaxed);
  made.start.store(start, kRelaxed);
  made.profile.store(static_cast<std::uint32_t>(&profile - gpu.mig_profiles) + 1,
                     std::memory_order_release);
  return MigResult::kDone;
}

// Compute instances have one to four slices, or all of their GPU instance.
inline bool has_compute_profile(const MigProfile& profile, std::uint32_t slices) {
  if (slices == profile.slices) return slices > 0;
  return slices >= 1 && slices < profile.slices && slices <= 4 &&
         !(slices == 3 && profile.slices == 4);
}

// Bit n: a compute instance may start at compute slice n of its GPU instance.
inline std::uint32_t compute_starts(const MigProfile& profile, std::uint32_t slices) {
  if (!has_compute_profile(profile, slices)) return 0;
  const std::uint32_t step = slices == 3 ? 4 : slices;
  std::uint32_t starts = 0;
  for (std::uint32_t start = 0; start + slices <= profile.slices; start += step) {
    starts |= 1u << start;
  }
  return starts;
}

inline std::uint32_t used_compute_slices(const GpuState& gpu, std::uint32_t gpu_instance) {
  std::uint32_t used = 0;
  for (std::uint32_t i = 0; i < kMaxComputeInstances; ++i) {
    const std::uint32_t slices = compute_slices_of(gpu, {gpu_instance, i});
    if (slices == 0) continue;
    used |= slice_mask(value_of(gpu.gpu_instances[gpu_instance].compute[i].start), slices);
  }
  return used;
}

// How many more compute instances of so many slices can be made.
inline std::uint32_t remaining_compute(const GpuState& gpu, std::uint32_t gpu_instance,
                                       std::uint32_t slices) {
  const MigProfile* profile = profile_of(gpu, gpu_instance);
  if (profile == nullptr) return 0;
  const std::uint32_t starts = compute_starts(*profile, slices);
  const std::uint32_t used = used_compute_slices(gpu, gpu_instance);
  std::uint32_t fitting = 0;
  for (std::uint32_t start = 0; start < 32; ++start) {
    const bool is_free = (used & slice_mask(start, slices)) == 0;
    fitting += (starts >> start & 1) != 0 && is_free ? 1 : 0;
  }
  return fitting;
}

// Makes a compute instance of so many slices, which its GPU instance must be able to have; `start`
// kNoId: the first free one.
inline MigResult create_compute_instance(GpuState& gpu, std::uint32_t gpu_instance,
                                         std::uint32_t slices, std::uint32_t start,
                                         std::uint32_t* id) {
  const MigProfile* profile = profile_of(gpu, gpu_instance);
  if (profile == nullptr) return MigResult::kNotFound;
  const std::uint32_t starts = compute_starts(*profile, slices);
  if (start != kNoId && (start >= 32 || (starts >> start & 1) == 0)) {
    return MigResult::kBadPlacement;
  }
  const std::uint32_t used = used_compute_slices(gpu, gpu_instance);
  const auto is_free = [&](std::uint32_t at) {
    return (starts >> at & 1) != 0 && (used & slice_mask(at, slices)) == 0;
  };
  for (std::uint32_t at = 0; start == kNoId && at < 32; ++at) {
    if (is_free(at)) start = at;
  }
  if (start == kNoId || !is_free(start)) return MigResult::kNoRoom;
  GpuInstance& owner = gpu.gpu_instances[gpu_instance];
  for (std::uint32_t i = 0; i < kMaxComputeInstances; ++i) {
    if (value_of(owner.compute[i].slices) != 0) continue;
    if (takes_failure(gpu.failing_compute_instances)) return MigResult::kFails;
    owner.compute[i].start.store(start, std::memory_order_relaxed);
    owner.compute[i].slices.store(slices, std::memory_order_release);
    *id = i;
    return MigResult::kDone;
  }
  return MigResult::kNoRoom;
}

// Whether an instance is, or lies in, another one.
inline bool lies_in(const InstanceId& inner, const InstanceId& outer) {
  return inner.gpu_instance == outer.gpu_instance &&
         (outer.compute_instance == kNoId || inner.compute_instance == outer.compute_instance);
}

// Returns true if a process that lives uses the instance.
inline bool is_used(const GpuState& gpu, const InstanceId& id) {
  ProcessReading processes[kMaxProcesses];
  const std::uint32_t count = copy_processes(gpu, processes);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (lies_in(processes[i].instance, id) && is_alive(processes[i])) return true;
  }
  return false;
}

// Takes an instance away with all that is in it and on it, which the driver itself never does
// while it is used: for a reset, and for tests of instances that vanish.
inline void drop_instance(GpuState& gpu, const InstanceId& id) {
  if (id.gpu_instance >= kMaxGpuInstances) return;
  for (ProcessEntry& entry : gpu.processes) {
    if (lies_in(unpacked(entry.instance.load(std::memory_order_relaxed)), id)) {
      entry.pid.store(0, std::memory_order_release);
    }
  }
  GpuInstance& owner = gpu.gpu_instances[id.gpu_instance];
  if (id.compute_instance == kNoId) owner.profile.store(0, std::memory_order_release);
  for (std::uint32_t i = 0; i < kMaxComputeInstances; ++i) {
    if (!lies_in({id.gpu_instance, i}, id)) continue;
    owner.compute[i].slices.store(0, std::memory_order_release);
  }
}

inline MigResult destroy_compute_instance(GpuState& gpu, const InstanceId& id) {
  if (compute_slices_of(gpu, id) == 0) return MigResult::kNotFound;
  if (is_used(gpu, id)) return MigResult::kInUse;
  drop_instance(gpu, id);
  return MigResult::kDone;
}

// A GPU instance goes after its compute instances.
inline MigResult destroy_gpu_instance(GpuState& gpu, std::uint32_t gpu_instance) {
  if (profile_of(gpu, gpu_instance) == nullptr) return MigResult::kNotFound;
  const InstanceId id{gpu_instance, kNoId};
  if (used_compute_slices(gpu, gpu_instance) != 0 || is_used(gpu, id)) return MigResult::kInUse;
  drop_instance(gpu, id);
  return MigResult::kDone;
}

inline bool has_instances(const GpuState& gpu) {
  return used_memory_slices(gpu) != 0;
}

// Asks for a mode. It takes effect at once if no process and no instance is on the GPU, nor a
// program that `is_held` says keeps the driver from changing it; otherwise at the next reset.
inline MigResult set_mig_mode(GpuState& gpu, bool is_on, bool is_held) {
  const auto wanted = static_cast<std::uint32_t>(is_on ? Support::kOn : Support::kOff);
  gpu.mig_pending.store(wanted, std::memory_order_relaxed);
  if (is_mig_on(gpu) == is_on) return MigResult::kDone;
  if (is_held || has_instances(gpu) || read_gpu(gpu).process_count > 0) return MigResult::kInUse;
  gpu.mig_mode.store(wanted, std::memory_order_relaxed);
  return MigResult::kDone;
}

// What a reset does: all instances are gone, and the mode that waits is there.
inline void reset_mig(GpuState& gpu) {
  if (!has_mig(gpu)) return;
  for (std::uint32_t i = 0; i < kMaxGpuInstances; ++i) drop_instance(gpu, {i, kNoId});
  gpu.mig_mode.store(value_of(gpu.mig_pending), std::memory_order_relaxed);
}

// The memory that programs on a GPU instance, or on the whole GPU, may use.
inline std::uint64_t usable_bytes(const GpuState& gpu, const InstanceId& id) {
  const MigProfile* profile = profile_of(gpu, id.gpu_instance);
  if (profile == nullptr) return gpu.memory_bytes - gpu.reserved_bytes;
  return std::uint64_t{profile->memory_mib} << 20;
}

// The multiprocessors of a compute instance.
inline std::uint32_t multiprocessors_of(const GpuState& gpu, const MigProfile& profile,
                                        std::uint32_t slices) {
  if (slices >= profile.slices) return profile.multiprocessors;
  for (std::uint32_t i = 0; i < mig_profile_count(gpu); ++i) {
    const MigProfile& each = gpu.mig_profiles[i];
    if (each.slices == 1) return each.multiprocessors * slices;
  }
  return profile.multiprocessors * slices / profile.slices;
}

}  // namespace gpu_emulator
