#include "smi/gpu.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

namespace gpu_emulator {

namespace {

// Longer than every text of NVML.
constexpr unsigned int kTextBytes = 256;
// NVML's value for memory of a process that is not known.
constexpr unsigned long long kNotAvailable = ~0ULL;

// NVML has this value for processes that use the whole GPU.
Reading id_of_instance(unsigned int id) {
  constexpr unsigned int kWhole = 0xffffffff;
  return id == kWhole ? Reading::none() : Reading{kSuccess, fmt::format("{}", id)};
}

template <class Function>
std::string text_of(const NvmlLibrary& nvml, const char* function) {
  std::array<char, kTextBytes> text{};
  const Return status = nvml.call<Function>(function, text.data(), kTextBytes);
  return status == kSuccess ? std::string(text.data()) : std::string();
}

}  // namespace

Reading Gpu::text(const char* function) const {
  std::array<char, kTextBytes> text{};
  const Return status = call<decltype(nvmlDeviceGetName)>(function, text.data(), kTextBytes);
  return {status, text.data()};
}

Told<unsigned int> Gpu::number(const char* function) const {
  Told<unsigned int> told;
  told.status = call<decltype(nvmlDeviceGetIndex)>(function, &told.value);
  return told;
}

Told<std::pair<unsigned int, unsigned int>> Gpu::numbers(const char* function) const {
  Told<std::pair<unsigned int, unsigned int>> told;
  told.status =
      call<decltype(nvmlDeviceGetEccMode)>(function, &told.value.first, &told.value.second);
  return told;
}

Told<FieldValue> Gpu::field(unsigned int id) const {
  Told<FieldValue> told;
  told.value.field_id = id;
  told.status =
      call<decltype(nvmlDeviceGetFieldValues)>("nvmlDeviceGetFieldValues", 1, &told.value);
  if (told.status == kSuccess) told.status = static_cast<Return>(told.value.nvml_return);
  if (told.status == kInvalidArgument) told.status = kNotSupported;  // newer than the driver
  return told;
}

Told<PciInfo> Gpu::pci() const {
  Told<PciInfo> told;
  told.status = call<decltype(nvmlDeviceGetPciInfo_v3)>("nvmlDeviceGetPciInfo_v3", &told.value);
  return told;
}

std::string Gpu::bus_id() const {
  const auto told = pci();
  return told.status == kSuccess ? told.value.bus_id : "N/A";
}

Return Gpu::add_processes(const char* function, bool is_graphics,
                          std::vector<GpuProcess>& out) const {
  using List = decltype(nvmlDeviceGetComputeRunningProcesses_v3);
  std::vector<ProcessInfo> found(128);
  auto count = static_cast<unsigned int>(found.size());
  Return status = call<List>(function, &count, found.data());
  if (status == kInsufficientSize) {
    // More may start between the two calls.
    found.resize(count + found.size());
    count = static_cast<unsigned int>(found.size());
    status = call<List>(function, &count, found.data());
  }
  if (status != kSuccess) return status;
  for (unsigned int i = 0; i < count; ++i) {
    GpuProcess process{found[i].pid,
                       is_graphics,
                       id_of_instance(found[i].gpu_instance_id),
                       id_of_instance(found[i].compute_instance_id),
                       {},
                       Reading::none()};
    if (found[i].used_gpu_memory != kNotAvailable) {
      process.used_memory = mebibytes(found[i].used_gpu_memory);
    }
    std::array<char, 4096> name{};
    if (nvml_->call<decltype(nvmlSystemGetProcessName)>(
            "nvmlSystemGetProcessName", process.pid, name.data(),
            static_cast<unsigned int>(name.size())) == kSuccess) {
      process.name = name.data();
    }
    out.push_back(std::move(process));
  }
  return kSuccess;
}

Told<std::vector<GpuProcess>> Gpu::processes() const {
  Told<std::vector<GpuProcess>> told;
  told.status = add_processes("nvmlDeviceGetComputeRunningProcesses_v3", false, told.value);
  if (told.status == kSuccess) {
    add_processes("nvmlDeviceGetGraphicsRunningProcesses_v3", true, told.value);
  }
  return told;
}

DriverFacts facts_of_driver(const NvmlLibrary& nvml) {
  using Version = decltype(nvmlSystemGetDriverVersion);
  DriverFacts facts;
  facts.version = text_of<Version>(nvml, "nvmlSystemGetDriverVersion");
  facts.nvml_version = text_of<Version>(nvml, "nvmlSystemGetNVMLVersion");
  facts.branch = static_cast<unsigned int>(std::strtoul(facts.version.c_str(), nullptr, 10));
  int cuda = 0;
  const Return status =
      nvml.call<decltype(nvmlSystemGetCudaDriverVersion)>("nvmlSystemGetCudaDriverVersion", &cuda);
  facts.cuda_version =
      status == kSuccess ? fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10) : "N/A";
  return facts;
}

}  // namespace gpu_emulator
