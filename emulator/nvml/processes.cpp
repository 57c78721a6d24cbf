#include "nvml/board.h"

// Calls about the processes on a GPU. All of them compute; none draws and none uses MPS.

using gpu_emulator::board;
using gpu_emulator::Device;
using gpu_emulator::GpuReading;
using gpu_emulator::GpuState;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kNotFound;
using gpu_emulator::kNotSupported;
using gpu_emulator::kUninitialized;
using gpu_emulator::list_of;
using gpu_emulator::ProcessDetail;
using gpu_emulator::ProcessInfo;
using gpu_emulator::ProcessInfoV1;
using gpu_emulator::ProcessReading;
using gpu_emulator::ProcessUtilizationInfo;
using gpu_emulator::ProcessUtilizationSample;
using gpu_emulator::read_gpu;
using gpu_emulator::with_device;
using gpu_emulator::with_gpu;

namespace {

constexpr unsigned long long kNotAvailable = ~0ull;

void write(const ProcessReading& process, ProcessInfoV1* out) {
  *out = {static_cast<unsigned int>(process.pid), process.memory_bytes};
}

void write(const ProcessReading& process, ProcessInfo* out) {
  *out = {static_cast<unsigned int>(process.pid), process.memory_bytes,
          process.instance.gpu_instance, process.instance.compute_instance};
}

// Those on an instance; on the whole GPU all of them.
GpuReading processes_of(const GpuState& gpu, const Device& device) {
  GpuReading reading = read_gpu(gpu);
  if (device.is_whole()) return reading;
  const std::uint32_t all = reading.process_count;
  reading.process_count = 0;
  for (std::uint32_t i = 0; i < all; ++i) {
    if (!(reading.processes[i].instance == device.instance)) continue;
    reading.processes[reading.process_count++] = reading.processes[i];
  }
  return reading;
}

template <class Info>
nvmlReturn_t list_processes(nvmlDevice_t device, unsigned int* count, Info* out) {
  if (board() == nullptr) return kUninitialized;
  if (count == nullptr) return kInvalidArgument;
  return with_device(device, [&](const GpuState& gpu, const Device& asked) {
    const GpuReading reading = processes_of(gpu, asked);
    return list_of(count, out, reading.process_count,
                   [&](unsigned int i, Info* item) { write(reading.processes[i], item); });
  });
}

nvmlReturn_t no_processes(nvmlDevice_t device, unsigned int* count) {
  return gpu_emulator::get_of_both(device, count, [](const GpuState&) { return 0u; });
}

// The driver samples each process now and then and keeps what is newer than the caller has seen;
// the boards sample at the call. `list(reading, time)` writes what there is.
template <class List>
nvmlReturn_t with_samples(nvmlDevice_t device, unsigned long long last_seen, List list) {
  return with_gpu(device, [&](const GpuState& gpu, std::uint32_t) {
    if (gpu_emulator::is_mig_on(gpu)) return kNotSupported;
    const GpuReading reading = read_gpu(gpu);
    const unsigned long long time_us = gpu_emulator::now_ns(CLOCK_REALTIME) / 1000;
    if (reading.process_count == 0 || last_seen >= time_us) return kNotFound;
    return list(reading, time_us);
  });
}

}  // namespace

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                  ProcessInfoV1* processes) {
  return list_processes(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                     ProcessInfo* processes) {
  return list_processes(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                     ProcessInfo* processes) {
  return list_processes(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                   ProcessInfoV1*) {
  return no_processes(device, count);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                      ProcessInfo*) {
  return no_processes(device, count);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                      ProcessInfo*) {
  return no_processes(device, count);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned int* count,
                                                     ProcessInfoV1*) {
  return no_processes(device, count);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int* count,
                                                        ProcessInfo*) {
  return no_processes(device, count);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                        ProcessInfo*) {
  return no_processes(device, count);
}

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                   gpu_emulator::ProcessDetailList* list) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  constexpr unsigned int kCompute = 0;
  constexpr unsigned int kLastMode = 2;
  if (board() != nullptr && list != nullptr && list->mode > kLastMode) return kInvalidArgument;
  return gpu_emulator::fill_versioned(device, list, 1, [&](const GpuState& gpu) {
    const GpuReading reading = read_gpu(gpu);
    const unsigned int found = list->mode == kCompute ? reading.process_count : 0;
    return list_of(&list->count, list->processes, found, [&](unsigned int i, ProcessDetail* out) {
      const ProcessReading& process = reading.processes[i];
      *out = {static_cast<unsigned int>(process.pid), process.memory_bytes,
              process.instance.gpu_instance, process.instance.compute_instance, kNotAvailable};
    });
  });
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, ProcessUtilizationSample* samples,
                                             unsigned int* count, unsigned long long last_seen) {
  if (board() == nullptr) return kUninitialized;
  if (count == nullptr) return kInvalidArgument;
  return with_samples(device, last_seen, [&](const GpuReading& now, unsigned long long time_us) {
    return list_of(count, samples, now.process_count,
                   [&](unsigned int i, ProcessUtilizationSample* out) {
                     const ProcessReading& process = now.processes[i];
                     const auto sm = static_cast<unsigned int>(process.utilization_percent);
                     *out = {static_cast<unsigned int>(process.pid), time_us, sm, sm / 2, 0, 0};
                   });
  });
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                   gpu_emulator::ProcessesUtilizationInfo* info) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  if (board() == nullptr) return kUninitialized;
  if (info == nullptr) return kInvalidArgument;
  if (info->version != gpu_emulator::version_of<gpu_emulator::ProcessesUtilizationInfo>(1)) {
    return gpu_emulator::kArgumentVersionMismatch;
  }
  return with_samples(
      device, info->last_seen_time_stamp, [&](const GpuReading& now, unsigned long long time_us) {
        return list_of(
            &info->count, info->processes, now.process_count,
            [&](unsigned int i, ProcessUtilizationInfo* out) {
              const ProcessReading& process = now.processes[i];
              const auto sm = static_cast<unsigned int>(process.utilization_percent);
              *out = {time_us, static_cast<unsigned int>(process.pid), sm, sm / 2, 0, 0, 0, 0};
            });
      });
}
