#include "nvml/board.h"

// MIG as a whole: its mode, and the devices that programs see of it, which are compute instances.
// gpu_instances.cpp and compute_instances.cpp partition a GPU.

using gpu_emulator::board;
using gpu_emulator::Device;
using gpu_emulator::DeviceAttributes;
using gpu_emulator::GpuState;
using gpu_emulator::InstanceId;
using gpu_emulator::is_mig_on;
using gpu_emulator::kInUse;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kNotFound;
using gpu_emulator::kNotSupported;
using gpu_emulator::kSuccess;
using gpu_emulator::kUninitialized;
using gpu_emulator::MigProfile;
using gpu_emulator::with_device;
using gpu_emulator::with_gpu;

namespace {

// A call on a handle that must be an instance's: `answer(gpu, device)`.
template <class Answer>
nvmlReturn_t with_mig_device(nvmlDevice_t handle, const void* out, Answer answer) {
  if (board() == nullptr) return kUninitialized;
  if (out == nullptr) return kInvalidArgument;
  return with_device(handle, [&](const GpuState& gpu, const Device& device) -> nvmlReturn_t {
    if (device.is_whole()) return is_mig_on(gpu) ? kInvalidArgument : kNotSupported;
    return answer(gpu, device);
  });
}

// The mode of Ampere's boards is changed by a reset, which every program that has the driver open
// prevents; from Hopper on only work does.
bool is_held(const GpuState& gpu) {
  return gpu.architecture < gpu_emulator::kHopper && gpu_emulator::is_driver_held();
}

}  // namespace

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int* current,
                                  unsigned int* pending) {
  if (board() == nullptr) return kUninitialized;
  if (current == nullptr || pending == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (!gpu_emulator::has_mig(gpu)) return kNotSupported;
    *current = is_mig_on(gpu) ? 1 : 0;
    *pending = gpu_emulator::is_mig_on_after_reset(gpu) ? 1 : 0;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned int mode,
                                  nvmlReturn_t* activation_status) {
  if (board() == nullptr) return kUninitialized;
  if (activation_status == nullptr || mode > 1) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t index) {
    *activation_status = kNotSupported;
    if (!gpu_emulator::has_mig(gpu)) return kNotSupported;
    if (!gpu_emulator::may_configure_mig()) return gpu_emulator::kNoPermission;
    *activation_status = kSuccess;
    const bool is_wanted = mode == 1;
    if (is_mig_on(gpu) == is_wanted && gpu_emulator::is_mig_on_after_reset(gpu) == is_wanted) {
      return kSuccess;
    }
    const bool held = is_held(gpu);
    const nvmlReturn_t changed = gpu_emulator::change_instances(
        index, [&](GpuState& to) { return gpu_emulator::set_mig_mode(to, is_wanted, held); });
    *activation_status = changed;
    return changed == kInUse ? kSuccess : changed;
  });
}

// Answers zero even if MIG could be switched on.
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int* count) {
  return gpu_emulator::get(
      device, count, [](const GpuState& gpu) { return is_mig_on(gpu) ? gpu.max_mig_devices : 0; });
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t handle, unsigned int* is_mig) {
  if (board() == nullptr) return kUninitialized;
  if (is_mig == nullptr) return kInvalidArgument;
  return with_device(handle, [&](const GpuState&, const Device& device) {
    *is_mig = device.is_whole() ? 0 : 1;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                 nvmlDevice_t* mig_device) {
  if (board() == nullptr) return kUninitialized;
  if (mig_device == nullptr) return kInvalidArgument;
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t place) {
    if (index >= gpu_emulator::kMaxMigDevices) return kInvalidArgument;
    if (!is_mig_on(gpu)) return kNotSupported;
    if (index >= gpu.max_mig_devices) return kInvalidArgument;
    InstanceId id;
    if (!gpu_emulator::instance_at(gpu, index, &id)) return kNotFound;
    *mig_device = gpu_emulator::handle_of(place, id);
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig_device,
                                                          nvmlDevice_t* device) {
  return with_mig_device(mig_device, static_cast<const void*>(device),
                         [&](const GpuState&, const Device& found) {
                           *device = gpu_emulator::handle_of(found.gpu);
                           return kSuccess;
                         });
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int* id) {
  return with_mig_device(device, id, [&](const GpuState&, const Device& found) {
    *id = found.instance.gpu_instance;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int* id) {
  return with_mig_device(device, id, [&](const GpuState&, const Device& found) {
    *id = found.instance.compute_instance;
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, DeviceAttributes* attributes) {
  if (board() == nullptr) return kUninitialized;
  if (attributes == nullptr) return kInvalidArgument;
  return with_device(device, [&](const GpuState& gpu, const Device& found) {
    const MigProfile* profile = gpu_emulator::profile_of(gpu, found.instance.gpu_instance);
    if (profile == nullptr) return kNotSupported;
    const std::uint32_t slices = gpu_emulator::compute_slices_of(gpu, found.instance);
    *attributes = {gpu_emulator::multiprocessors_of(gpu, *profile, slices),
                   profile->copy_engines,
                   profile->decoders,
                   0,
                   profile->jpeg_engines,
                   profile->ofa_engines,
                   profile->slices,
                   slices,
                   profile->memory_mib};
    return kSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, DeviceAttributes* attributes) {
  return nvmlDeviceGetAttributes_v2(device, attributes);
}
