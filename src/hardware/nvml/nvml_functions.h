#pragma once

#include <expected>
#include <string>

#include "hardware/nvml/nvml_abi.h"
#include "hardware/readings.h"

namespace gpu_platform::hardware {

// The functions of one loaded library, null where it has none. Of functions with versions the
// newest is taken; where an older version has another ABI, it has a field of its own, used when the
// newer is null.
struct NvmlFunctions {
  // Needed: without these the file is no NVML.
  NvmlInitFunction init = nullptr;
  NvmlInitFunction shutdown = nullptr;
  NvmlCountFunction count = nullptr;
  NvmlHandleByIndexFunction handle_by_index = nullptr;

  NvmlErrorStringFunction error_string = nullptr;
  NvmlSystemTextFunction driver_version = nullptr;
  NvmlSystemTextFunction library_version = nullptr;
  NvmlSystemNumberFunction cuda_version = nullptr;

  NvmlTextFunction name = nullptr;
  NvmlTextFunction uuid = nullptr;
  NvmlTextFunction serial = nullptr;
  NvmlNumberFunction minor = nullptr;
  NvmlStructFunction<NvmlPciInfoV3> pci_v3 = nullptr;
  NvmlStructFunction<NvmlPciInfoV2> pci_v2 = nullptr;
  NvmlCapabilityFunction compute_capability = nullptr;
  NvmlBitsFunction cpu_affinity = nullptr;
  NvmlScopedBitsFunction memory_affinity = nullptr;
  NvmlNumberFunction power_limit = nullptr;
  NvmlTwoNumbersFunction power_limit_range = nullptr;
  NvmlNumberFunction pcie_generation_max = nullptr;
  NvmlNumberFunction pcie_width_max = nullptr;
  NvmlTwoNumbersFunction mig_mode = nullptr;
  NvmlNumberFunction max_mig_devices = nullptr;
  NvmlTwoNumbersFunction ecc_mode = nullptr;
  NvmlNumberFunction persistence = nullptr;
  NvmlSelectedNumberFunction temperature_threshold = nullptr;

  NvmlStructFunction<NvmlMemoryV2> memory_v2 = nullptr;
  NvmlStructFunction<NvmlMemoryV1> memory_v1 = nullptr;
  NvmlStructFunction<NvmlUtilization> utilization = nullptr;
  NvmlStructFunction<NvmlTemperatureV1> temperature_v = nullptr;
  NvmlSelectedNumberFunction temperature = nullptr;
  NvmlNumberFunction power = nullptr;
  NvmlSelectedNumberFunction clock = nullptr;
  NvmlEccFunction ecc_errors = nullptr;
  NvmlWideNumberFunction throttle_reasons = nullptr;
  NvmlFieldsFunction fields = nullptr;
  NvmlListFunction<NvmlProcessInfoV2> processes_v2 = nullptr;
  NvmlListFunction<NvmlProcessInfoV1> processes_v1 = nullptr;
  NvmlListFunction<NvmlProcessInfoV2> graphics_v2 = nullptr;
  NvmlListFunction<NvmlProcessInfoV1> graphics_v1 = nullptr;
  NvmlListFunction<NvmlProcessInfoV2> mps_v2 = nullptr;
  NvmlListFunction<NvmlProcessInfoV1> mps_v1 = nullptr;
  NvmlTwoNumbersFunction encoder = nullptr;  // percent, and the microseconds that it is of
  NvmlTwoNumbersFunction decoder = nullptr;

  // Slow ones.
  NvmlWideNumberFunction energy = nullptr;
  NvmlSelectedNumberFunction pcie_throughput = nullptr;
  NvmlNumberFunction pcie_generation = nullptr;
  NvmlNumberFunction pcie_width = nullptr;
  NvmlNumberFunction pcie_replays = nullptr;
  NvmlFourNumbersFunction remapped_rows = nullptr;
  NvmlRetiredPagesFunction retired_pages = nullptr;
  NvmlNumberFunction retirement_pending = nullptr;
  NvmlProcessSamplesFunction process_samples = nullptr;

  NvmlCommonAncestorFunction common_ancestor = nullptr;
  NvmlSelectedNumberFunction nvlink_state = nullptr;
  NvmlSelectedNumberFunction nvlink_version = nullptr;
  NvmlSelectedNumberFunction nvlink_peer_type = nullptr;
  // The plain name writes NvmlPciInfoV2, which is smaller and has the same numbers in front.
  NvmlSelectedStructFunction<NvmlPciInfoV3> nvlink_peer_pci = nullptr;

  NvmlEventSetCreateFunction event_set_create = nullptr;
  NvmlEventSetFreeFunction event_set_free = nullptr;
  NvmlEventSetWaitFunction event_set_wait = nullptr;
  NvmlRegisterEventsFunction register_events = nullptr;
  NvmlWideNumberFunction event_types = nullptr;

  NvmlSelectedStructFunction<NvmlGpuInstanceProfile> mig_profile = nullptr;
  NvmlPlacementsFunction mig_placements = nullptr;

  NvmlStructFunction<NvmlGpmSupport> gpm_support = nullptr;
  NvmlGpmAllocFunction gpm_alloc = nullptr;
  NvmlGpmFreeFunction gpm_free = nullptr;
  NvmlGpmSampleFunction gpm_sample = nullptr;
  NvmlGpmMetricsFunction gpm_metrics = nullptr;
};

// A library opened by dlopen, closed when this goes.
class NvmlModule {
 public:
  static std::expected<NvmlModule, LibraryProblem> open(const std::string& path);
  NvmlModule(NvmlModule&& other) noexcept;
  NvmlModule& operator=(NvmlModule&&) = delete;
  ~NvmlModule();

  const NvmlFunctions& functions() const { return functions_; }

  // Returns whether the library exports a function that we do not call.
  bool has(const char* name) const;

 private:
  explicit NvmlModule(void* handle) : handle_(handle) {}

  void* handle_ = nullptr;
  NvmlFunctions functions_;
};

}  // namespace gpu_platform::hardware
