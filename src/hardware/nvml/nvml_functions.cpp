#include "hardware/nvml/nvml_functions.h"

#include <dlfcn.h>

#include <initializer_list>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::hardware {
namespace {

// The first of the names that the library has.
template <class Function>
void find(void* library, Function& out, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* symbol = dlsym(library, name)) {
      out = reinterpret_cast<Function>(symbol);
      return;
    }
  }
}

void find_system(void* library, NvmlFunctions& f) {
  find(library, f.init, {"nvmlInit_v2", "nvmlInit"});
  find(library, f.shutdown, {"nvmlShutdown"});
  find(library, f.count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  find(library, f.handle_by_index, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  find(library, f.error_string, {"nvmlErrorString"});
  find(library, f.driver_version, {"nvmlSystemGetDriverVersion"});
  find(library, f.library_version, {"nvmlSystemGetNVMLVersion"});
  find(library, f.cuda_version,
       {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"});
}

void find_description(void* library, NvmlFunctions& f) {
  find(library, f.name, {"nvmlDeviceGetName"});
  find(library, f.uuid, {"nvmlDeviceGetUUID"});
  find(library, f.serial, {"nvmlDeviceGetSerial"});
  find(library, f.minor, {"nvmlDeviceGetMinorNumber"});
  find(library, f.pci_v3, {"nvmlDeviceGetPciInfo_v3"});
  find(library, f.pci_v2, {"nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"});
  find(library, f.compute_capability, {"nvmlDeviceGetCudaComputeCapability"});
  find(library, f.cpu_affinity, {"nvmlDeviceGetCpuAffinity"});
  find(library, f.memory_affinity, {"nvmlDeviceGetMemoryAffinity"});
  // The enforced limit takes other limits into account. Older drivers know only the one that was
  // set.
  find(library, f.power_limit,
       {"nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit"});
  find(library, f.power_limit_range, {"nvmlDeviceGetPowerManagementLimitConstraints"});
  find(library, f.pcie_generation_max, {"nvmlDeviceGetMaxPcieLinkGeneration"});
  find(library, f.pcie_width_max, {"nvmlDeviceGetMaxPcieLinkWidth"});
  find(library, f.mig_mode, {"nvmlDeviceGetMigMode"});
  find(library, f.max_mig_devices, {"nvmlDeviceGetMaxMigDeviceCount"});
  find(library, f.ecc_mode, {"nvmlDeviceGetEccMode"});
  find(library, f.persistence, {"nvmlDeviceGetPersistenceMode"});
  find(library, f.temperature_threshold, {"nvmlDeviceGetTemperatureThreshold"});
}

void find_readings(void* library, NvmlFunctions& f) {
  find(library, f.memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  find(library, f.memory_v1, {"nvmlDeviceGetMemoryInfo"});
  find(library, f.utilization, {"nvmlDeviceGetUtilizationRates"});
  find(library, f.temperature_v, {"nvmlDeviceGetTemperatureV"});
  find(library, f.temperature, {"nvmlDeviceGetTemperature"});
  find(library, f.power, {"nvmlDeviceGetPowerUsage"});
  find(library, f.clock, {"nvmlDeviceGetClockInfo"});
  find(library, f.ecc_errors, {"nvmlDeviceGetTotalEccErrors"});
  find(library, f.processes_v2,
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  find(library, f.processes_v1, {"nvmlDeviceGetComputeRunningProcesses"});
  find(library, f.graphics_v2,
       {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"});
  find(library, f.graphics_v1, {"nvmlDeviceGetGraphicsRunningProcesses"});
  find(
      library, f.mps_v2,
      {"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2"});
  find(library, f.mps_v1, {"nvmlDeviceGetMPSComputeRunningProcesses"});
  find(library, f.encoder, {"nvmlDeviceGetEncoderUtilization"});
  find(library, f.decoder, {"nvmlDeviceGetDecoderUtilization"});
  find(library, f.throttle_reasons,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  find(library, f.fields, {"nvmlDeviceGetFieldValues"});
}

void find_slow(void* library, NvmlFunctions& f) {
  find(library, f.pcie_throughput, {"nvmlDeviceGetPcieThroughput"});
  find(library, f.pcie_generation, {"nvmlDeviceGetCurrPcieLinkGeneration"});
  find(library, f.pcie_width, {"nvmlDeviceGetCurrPcieLinkWidth"});
  find(library, f.pcie_replays, {"nvmlDeviceGetPcieReplayCounter"});
  find(library, f.remapped_rows, {"nvmlDeviceGetRemappedRows"});
  find(library, f.retired_pages, {"nvmlDeviceGetRetiredPages"});
  find(library, f.retirement_pending, {"nvmlDeviceGetRetiredPagesPendingStatus"});
  find(library, f.energy, {"nvmlDeviceGetTotalEnergyConsumption"});
  find(library, f.process_samples, {"nvmlDeviceGetProcessUtilization"});
}

void find_links(void* library, NvmlFunctions& f) {
  find(library, f.common_ancestor, {"nvmlDeviceGetTopologyCommonAncestor"});
  find(library, f.nvlink_state, {"nvmlDeviceGetNvLinkState"});
  find(library, f.nvlink_version, {"nvmlDeviceGetNvLinkVersion"});
  find(library, f.nvlink_peer_type, {"nvmlDeviceGetNvLinkRemoteDeviceType"});
  find(library, f.nvlink_peer_pci,
       {"nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo"});
}

void find_events(void* library, NvmlFunctions& f) {
  find(library, f.event_set_create, {"nvmlEventSetCreate"});
  find(library, f.event_set_free, {"nvmlEventSetFree"});
  find(library, f.event_set_wait, {"nvmlEventSetWait_v2", "nvmlEventSetWait"});
  find(library, f.register_events, {"nvmlDeviceRegisterEvents"});
  find(library, f.event_types, {"nvmlDeviceGetSupportedEventTypes"});
}

void find_capabilities(void* library, NvmlFunctions& f) {
  find(library, f.mig_profile, {"nvmlDeviceGetGpuInstanceProfileInfo"});
  find(library, f.mig_placements, {"nvmlDeviceGetGpuInstancePossiblePlacements_v2"});
}

void find_gpm(void* library, NvmlFunctions& f) {
  find(library, f.gpm_support, {"nvmlGpmQueryDeviceSupport"});
  find(library, f.gpm_alloc, {"nvmlGpmSampleAlloc"});
  find(library, f.gpm_free, {"nvmlGpmSampleFree"});
  find(library, f.gpm_sample, {"nvmlGpmSampleGet"});
  find(library, f.gpm_metrics, {"nvmlGpmMetricsGet"});
}

std::string missing(const NvmlFunctions& f) {
  if (f.init == nullptr) return "nvmlInit_v2";
  if (f.shutdown == nullptr) return "nvmlShutdown";
  if (f.count == nullptr) return "nvmlDeviceGetCount_v2";
  if (f.handle_by_index == nullptr) return "nvmlDeviceGetHandleByIndex_v2";
  return {};
}

// dlopen has no error numbers, only words.
LibraryProblem not_opened(const std::string& path, std::string_view words) {
  if (words.find("No such file") != std::string_view::npos) {
    return {ProblemKind::kNoLibrary,
            fmt::format("{} was not found: no NVIDIA driver is installed", path)};
  }
  if (words.find("Permission denied") != std::string_view::npos) {
    return {ProblemKind::kNoPermission, fmt::format("{} may not be read", path)};
  }
  return {ProblemKind::kNotNvml, fmt::format("{} is not a usable library: {}", path, words)};
}

}  // namespace

std::expected<NvmlModule, LibraryProblem> NvmlModule::open(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* words = dlerror();
    return std::unexpected(not_opened(path, words == nullptr ? "dlopen failed" : words));
  }
  NvmlModule module(handle);
  find_system(handle, module.functions_);
  find_description(handle, module.functions_);
  find_readings(handle, module.functions_);
  find_slow(handle, module.functions_);
  find_links(handle, module.functions_);
  find_events(handle, module.functions_);
  find_capabilities(handle, module.functions_);
  find_gpm(handle, module.functions_);
  if (const std::string name = missing(module.functions_); !name.empty()) {
    return std::unexpected(LibraryProblem{ProblemKind::kNotNvml,
                                          fmt::format("{} is not NVML: it has no {}", path, name)});
  }
  return module;
}

bool NvmlModule::has(const char* name) const {
  return dlsym(handle_, name) != nullptr;
}

NvmlModule::NvmlModule(NvmlModule&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), functions_(other.functions_) {}

NvmlModule::~NvmlModule() {
  if (handle_ != nullptr) dlclose(handle_);
}

}  // namespace gpu_platform::hardware
