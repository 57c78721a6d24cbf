#pragma once

#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "mig_names.h"
#include "nvml/nvml_exports.h"

// The library's hold on the node's state file, and the checks that every call on a device begins
// with. Thread-safe, as NVML is.

namespace gpu_emulator {

// Opens the file named by GPU_EMULATOR_STATE at the first call and counts the calls.
Return attach();
// Drops one count. The mapping stays: another thread may be inside a call.
Return detach();

// Returns the mapped state; null if the library is not initialised.
const BoardState* board();

// The GPUs that programs may know of, by their index on the board: all of them, or with
// GPU_EMULATOR_DEVICES=DIR those that have a device node DIR/nvidiaN, as a container has them.
// Found when the library is initialised, also after it was shut down: as with a driver, a GPU that
// has gone, or came back in another place, shows then. NVML's index is the place in this list.
std::uint32_t visible_count();
std::uint32_t visible_gpu(std::uint32_t place);       // below visible_count()
std::uint32_t place_of_visible(std::uint32_t index);  // visible_count(): it is not visible

// The number of its device node: its place among all GPUs that are listed.
std::uint32_t minor_of(std::uint32_t index);

// What a handle of a device stands for: a GPU, or a compute instance of it.
struct Device {
  std::uint32_t gpu = 0;
  InstanceId instance = {};

  bool is_whole() const { return is_whole_gpu(instance); }
};

DeviceHandle* handle_of(std::uint32_t index);
DeviceHandle* handle_of(std::uint32_t index, const InstanceId& compute_instance);
// Gets what is behind a handle; false if it is none of ours. The instance may be gone.
bool device_of(const DeviceHandle* handle, Device* device);

// The same for the handles of instances, which are no devices.
GpuInstanceHandle* handle_of_gpu_instance(std::uint32_t index, std::uint32_t gpu_instance);
bool device_of(const GpuInstanceHandle* handle, Device* device);
ComputeInstanceHandle* handle_of_compute_instance(std::uint32_t index, const InstanceId& id);
bool device_of(const ComputeInstanceHandle* handle, Device* device);

// Whether programs may know of the instance: any of them, or with GPU_EMULATOR_DEVICES=DIR one
// whose two device nodes DIR/nvidia-caps/nvidia-capN are there.
bool is_instance_visible(const GpuState& gpu, const InstanceId& id);
// The visible instance that NVML counts so; false if there are not so many.
bool instance_at(const GpuState& gpu, std::uint32_t place, InstanceId* id);
// Whether this program may make and destroy instances: root may, and with GPU_EMULATOR_DEVICES=DIR
// each program that may read DIR/nvidia-caps/nvidia-cap1.
bool may_configure_mig();
// Whether another process has NVML initialised. On Ampere the driver does not change the mode then.
bool is_driver_held();

// Numbers that index or count in the state, bounded for all that a writer left in it.
inline std::uint32_t link_count(const GpuState& gpu) {
  return gpu.nvlink_count < kMaxNvLinks ? gpu.nvlink_count : kMaxNvLinks;
}
inline std::uint32_t gpu_count(const BoardState& state) {
  return state.gpu_count < kMaxGpus ? state.gpu_count : kMaxGpus;
}
inline const NumaNode& numa_node_of(const BoardState& state, const GpuState& gpu) {
  return state.numa_nodes[gpu.numa_node % kMaxNumaNodes];
}

inline void wait_us(std::uint32_t microseconds) {
  if (microseconds == 0) return;
  timespec left{static_cast<time_t>(microseconds / 1'000'000),
                static_cast<long>(microseconds % 1'000'000) * 1'000};
  while (nanosleep(&left, &left) != 0) {
  }
}

// Waits as long as the board is set to hang; looks again and again, for that may be changed. A time
// that is further away than a hang may be is of another boot.
inline void wait_for_answer(const GpuState& gpu) {
  constexpr std::uint32_t kStepUs = 10'000;
  while (true) {
    const std::uint64_t from = gpu.answers_from_ns.load(std::memory_order_relaxed);
    const std::uint64_t now = now_ns(CLOCK_BOOTTIME);
    if (from <= now || from - now > kLongestHangNs) return;
    wait_us(kStepUs);
  }
}

// Keeps the calling thread's CPU busy, as a driver does with a call.
inline void work_us(std::uint32_t microseconds) {
  if (microseconds == 0) return;
  const auto cpu_ns = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  };
  const std::int64_t end = cpu_ns() + std::int64_t{microseconds} * 1'000;
  while (cpu_ns() < end) {
  }
}

// Runs `answer(gpu, device)` for a call on a handle of any kind: after the checks that each such
// call makes, after the delay and the work the board is set to, and unless it is set to answer with
// an error. A handle dies with its instance.
template <class Handle, class Answer>
Return with_device(const Handle* handle, Answer answer) {
  const BoardState* state = board();
  if (state == nullptr) return kUninitialized;
  Device device;
  if (!device_of(handle, &device) || device.gpu >= gpu_count(*state)) return kInvalidArgument;
  const GpuState& gpu = state->gpus[device.gpu];
  wait_for_answer(gpu);
  wait_us(gpu.answer_delay_us.load(std::memory_order_relaxed));
  work_us(gpu.answer_work_us.load(std::memory_order_relaxed));
  if (const std::uint32_t forced = gpu.answer.load(std::memory_order_relaxed)) {
    return static_cast<Return>(forced);
  }
  if (!is_there(gpu, device.instance)) return kInvalidArgument;
  return answer(gpu, device);
}

// The same for calls that only a GPU answers, not an instance of it: `answer(gpu, index)`.
template <class Answer>
Return with_gpu(const DeviceHandle* handle, Answer answer) {
  return with_device(handle, [&](const GpuState& gpu, const Device& device) -> Return {
    return device.is_whole() ? answer(gpu, device.gpu) : kNotSupported;
  });
}

// What is true of a GPU and of its instances.
template <class Value, class Read>
Return get_of_both(const DeviceHandle* handle, Value* out, Read read) {
  if (board() == nullptr) return kUninitialized;
  if (out == nullptr) return kInvalidArgument;
  return with_device(handle, [&](const GpuState& gpu, const Device&) {
    *out = static_cast<Value>(read(gpu));
    return kSuccess;
  });
}

// The usual case: one number out.
template <class Value, class Read>
Return get(const DeviceHandle* device, Value* out, Read read) {
  if (board() == nullptr) return kUninitialized;
  if (out == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    *out = static_cast<Value>(read(gpu));
    return kSuccess;
  });
}

// The usual case for a structure that says its version: `version` is the only one accepted.
template <class Info, class Fill>
Return fill_versioned(const DeviceHandle* device, Info* out, unsigned int version, Fill fill) {
  if (board() == nullptr) return kUninitialized;
  if (out == nullptr) return kInvalidArgument;
  if (out->version != version_of<Info>(version)) return kArgumentVersionMismatch;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) { return fill(gpu); });
}

// NVML's manner of lists: *count says how many fit, and then how many there are.
template <class Item, class Write>
Return list_of(unsigned int* count, Item* out, unsigned int found, Write write) {
  const unsigned int capacity = out == nullptr ? 0 : *count;
  *count = found;
  if (found > capacity) return kInsufficientSize;
  for (unsigned int i = 0; i < found; ++i) write(i, &out[i]);
  return kSuccess;
}

// NVML's list of the places where an instance may start: bit n of `starts`, each of so many slices.
// Without room for placements it tells the count alone.
template <class Placement>
Return list_of_starts(std::uint32_t starts, std::uint32_t size, Placement* out,
                      unsigned int* count) {
  unsigned int at[32];
  unsigned int found = 0;
  for (unsigned int start = 0; start < 32; ++start) {
    if ((starts >> start & 1) != 0) at[found++] = start;
  }
  if (out == nullptr) {
    *count = found;
    return kSuccess;
  }
  return list_of(count, out, found,
                 [&](unsigned int i, Placement* each) { *each = {at[i], size}; });
}

// True when the board's driver is older than the function. Real libraries differ in what they
// export, and programs look a symbol up before they call it; one library for all boards has every
// symbol, so a call of such a function answers kFunctionNotFound, which is what bindings make of a
// failed look-up.
bool lacks(const char* function);

// Copies a text with its NUL, or says that it does not fit. `text` lies in the state, so its end is
// looked for no further than its field goes.
Return copy_field(const char* text, std::size_t size, char* out, unsigned int length);
template <std::size_t N>
Return copy_text(const char (&text)[N], char* out, unsigned int length) {
  return copy_field(text, N, out, length);
}

// Architectures, nvmlDeviceArchitecture_t.
inline constexpr std::uint32_t kTuring = 6;
inline constexpr std::uint32_t kAmpere = 7;
inline constexpr std::uint32_t kAda = 8;
inline constexpr std::uint32_t kHopper = 9;
inline constexpr std::uint32_t kBlackwell = 10;

// Runs `edit(gpu)` on the state that all processes share, after the GPU's totals were brought up to
// now. Answers kInUse when others hold the state for too long, kNoPermission where the file may not
// be written.
Return change_gpu(std::uint32_t index, void (*edit)(void* context, GpuState& gpu), void* context);
template <class Edit>
Return change(std::uint32_t index, Edit edit) {
  return change_gpu(
      index, [](void* context, GpuState& gpu) { (*static_cast<Edit*>(context))(gpu); }, &edit);
}

// Runs `edit(gpu)`, a MigResult, in the same way. When it has changed the instances, programs that
// wait for such an event are told, and the files of the capabilities follow.
Return change_mig(std::uint32_t index, MigResult (*edit)(void* context, GpuState& gpu),
                  void* context);
template <class Edit>
Return change_instances(std::uint32_t index, Edit edit) {
  return change_mig(
      index, [](void* context, GpuState& gpu) { return (*static_cast<Edit*>(context))(gpu); },
      &edit);
}

// A setting is for root, as NVML has it: `edit(gpu)` runs where the board has it and root asks.
template <class Check, class Edit>
Return set(const DeviceHandle* device, Check check, Edit edit) {
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t index) {
    if (const Return refused = check(gpu); refused != kSuccess) return refused;
    if (geteuid() != 0) return kNoPermission;
    return change(index, edit);
  });
}

// Energy and the like up to now; never less than this process was told before. Where the library
// may write the state, it brings the state up to date as well.
Totals totals_of(std::uint32_t index);

}  // namespace gpu_emulator
