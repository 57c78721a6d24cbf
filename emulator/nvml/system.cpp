#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nvml/board.h"

using gpu_emulator::board;
using gpu_emulator::BoardState;
using gpu_emulator::GpuState;
using gpu_emulator::kInvalidArgument;
using gpu_emulator::kNotFound;
using gpu_emulator::kSuccess;
using gpu_emulator::kUninitialized;

namespace {

struct NamedReturn {
  int code;
  const char* text;
};

constexpr NamedReturn kReturns[] = {
    {0, "Success"},
    {1, "Uninitialized"},
    {2, "Invalid Argument"},
    {3, "Not Supported"},
    {4, "Insufficient Permissions"},
    {5, "Already Initialized"},
    {6, "Not Found"},
    {7, "Insufficient Size"},
    {8, "Insufficient External Power"},
    {9, "Driver Not Loaded"},
    {10, "Timeout"},
    {11, "Interrupt Request Issue"},
    {12, "NVML Shared Library Not Found"},
    {13, "Function Not Found"},
    {14, "Corrupted infoROM"},
    {15, "GPU is lost"},
    {16, "GPU requires restart"},
    {17, "The operating system has blocked the request."},
    {18, "RM has detected an NVML/RM version mismatch."},
    {19, "GPU is in use by another client"},
    {20, "Insufficient Memory"},
    {21, "No data"},
    {23, "Insufficient Resources"},
    {25, "Version mismatch between caller and library"},
    {27, "The system is not ready for the request"},
    {28, "No GPUs were found"},
    {999, "Unknown Error"},
};

// Fields of a PCI address as people and programs write it: "00000000:1B:00.0", "0000:1b:00.0",
// "1b:00.0".
bool parse_bus_id(const char* text, unsigned int* domain, unsigned int* bus, unsigned int* device) {
  unsigned int function = 0;
  char rest = '\0';
  if (sscanf(text, "%8x:%2x:%2x.%1x%c", domain, bus, device, &function, &rest) == 4) {
    return function == 0;
  }
  *domain = 0;
  return sscanf(text, "%2x:%2x.%1x%c", bus, device, &function, &rest) == 3 && function == 0;
}

template <class Matches>
nvmlReturn_t find_device(nvmlDevice_t* device, Matches matches) {
  const BoardState* state = board();
  if (state == nullptr) return kUninitialized;
  if (device == nullptr) return kInvalidArgument;
  for (std::uint32_t i = 0; i < gpu_emulator::visible_count(); ++i) {
    const std::uint32_t index = gpu_emulator::visible_gpu(i);
    if (!matches(state->gpus[index])) continue;
    *device = gpu_emulator::handle_of(index);
    return kSuccess;
  }
  return kNotFound;
}

// An instance of a GPU that programs may know of.
nvmlReturn_t instance_by_uuid(const char* uuid, nvmlDevice_t* device) {
  if (device == nullptr) return kInvalidArgument;
  for (std::uint32_t i = 0; i < gpu_emulator::visible_count(); ++i) {
    const std::uint32_t index = gpu_emulator::visible_gpu(i);
    const GpuState& gpu = board()->gpus[index];
    gpu_emulator::InstanceId id;
    if (!gpu_emulator::find_mig_uuid(gpu, uuid, strlen(uuid), &id)) continue;
    if (!gpu_emulator::is_instance_visible(gpu, id)) break;
    *device = gpu_emulator::handle_of(index, id);
    return kSuccess;
  }
  return kNotFound;
}

nvmlReturn_t device_count(unsigned int* count) {
  if (board() == nullptr) return kUninitialized;
  if (count == nullptr) return kInvalidArgument;
  *count = gpu_emulator::visible_count();
  return kSuccess;
}

nvmlReturn_t device_by_index(unsigned int index, nvmlDevice_t* device) {
  if (board() == nullptr) return kUninitialized;
  if (device == nullptr || index >= gpu_emulator::visible_count()) return kInvalidArgument;
  *device = gpu_emulator::handle_of(gpu_emulator::visible_gpu(index));
  // A GPU that fell off the bus is refused here already.
  return gpu_emulator::with_gpu(*device, [](const GpuState&, std::uint32_t) { return kSuccess; });
}

nvmlReturn_t device_by_bus_id(const char* bus_id, nvmlDevice_t* device) {
  if (board() == nullptr) return kUninitialized;
  unsigned int domain = 0;
  unsigned int bus = 0;
  unsigned int slot = 0;
  if (bus_id == nullptr || !parse_bus_id(bus_id, &domain, &bus, &slot)) return kInvalidArgument;
  return find_device(device, [&](const GpuState& gpu) {
    return gpu.pci.domain == domain && gpu.pci.bus == bus && gpu.pci.device == slot;
  });
}

}  // namespace

nvmlReturn_t nvmlInit() {
  return gpu_emulator::attach();
}
nvmlReturn_t nvmlInit_v2() {
  return gpu_emulator::attach();
}
nvmlReturn_t nvmlInitWithFlags(unsigned int) {
  return gpu_emulator::attach();
}
nvmlReturn_t nvmlShutdown() {
  return gpu_emulator::detach();
}

const char* nvmlErrorString(nvmlReturn_t result) {
  for (const NamedReturn& known : kReturns) {
    if (known.code == static_cast<int>(result)) return known.text;
  }
  return "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned int length) {
  const BoardState* state = board();
  return state == nullptr ? kUninitialized
                          : gpu_emulator::copy_text(state->driver_version, version, length);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned int length) {
  const BoardState* state = board();
  return state == nullptr ? kUninitialized
                          : gpu_emulator::copy_text(state->nvml_version, version, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  const BoardState* state = board();
  if (state == nullptr) return kUninitialized;
  if (version == nullptr) return kInvalidArgument;
  *version = static_cast<int>(state->cuda_version);
  return kSuccess;
}

nvmlReturn_t nvmlSystemGetDriverBranch(gpu_emulator::DriverBranchInfo* info, unsigned int length) {
  if (gpu_emulator::lacks(__func__)) return gpu_emulator::kFunctionNotFound;
  const BoardState* state = board();
  if (state == nullptr) return kUninitialized;
  if (info == nullptr) return kInvalidArgument;
  if (info->version != gpu_emulator::version_of<gpu_emulator::DriverBranchInfo>(1)) {
    return gpu_emulator::kArgumentVersionMismatch;
  }
  char branch[32];
  snprintf(branch, sizeof branch, "r%u_00", state->driver_major);
  const unsigned int capacity = length < sizeof info->branch ? length : sizeof info->branch;
  return gpu_emulator::copy_text(branch, info->branch, capacity);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char* name, unsigned int length) {
  if (board() == nullptr) return kUninitialized;
  if (name == nullptr || length == 0) return kInvalidArgument;
  char path[48];
  snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return kNotFound;
  const ssize_t size = read(fd, name, length - 1);
  close(fd);
  if (size < 0) return gpu_emulator::kUnknown;
  name[size] = '\0';  // arguments are separated by NUL, so the name ends at the first
  return kSuccess;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int* count) {
  return device_count(count);
}
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* count) {
  return device_count(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t* device) {
  return device_by_index(index, device);
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device) {
  return device_by_index(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  if (board() == nullptr) return kUninitialized;
  if (uuid == nullptr) return kInvalidArgument;
  if (strncmp(uuid, "MIG-", 4) == 0) return instance_by_uuid(uuid, device);
  return find_device(device, [&](const GpuState& gpu) { return strcmp(gpu.uuid, uuid) == 0; });
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* device) {
  if (board() == nullptr) return kUninitialized;
  if (serial == nullptr) return kInvalidArgument;
  return find_device(device, [&](const GpuState& gpu) { return strcmp(gpu.serial, serial) == 0; });
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* bus_id, nvmlDevice_t* device) {
  return device_by_bus_id(bus_id, device);
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, nvmlDevice_t* device) {
  return device_by_bus_id(bus_id, device);
}
