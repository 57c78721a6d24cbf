#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hardware/nvml/nvml_functions.h"
#include "hardware/nvml/nvml_links.h"
#include "hardware/readings.h"

namespace gpu_platform::hardware {

// One GPU's part of the driver, for one round of questions. Remembers the last refusal that
// concerns the GPU as a whole; after it nothing more is asked.
class NvmlGpu {
 public:
  // `functions` outlives this.
  NvmlGpu(const NvmlFunctions& functions, NvmlDevice* device) : f_(functions), device_(device) {}

  // The code that ended the answers, kNvmlSuccess while the GPU speaks.
  int refusal() const { return refusal_; }

  void describe(GpuDescription& out);
  // All but what GPM counts.
  void read(GpuReading& out);
  model::GpuSlowMetrics read_slow();
  // 4 ms of the CPU on an H100; all of read() takes 0.2 ms.
  std::optional<std::uint64_t> energy_mj();
  // Those of samples that are newer than `seen_us`, which becomes the time of the newest. Each
  // process once. On the driver's clock, in microseconds since 1970; 0: all that it keeps.
  std::vector<ProcessLoad> loads(std::uint64_t& seen_us);

  // The ends of its NVLinks that are up, and its own place.
  NvLinkPorts ports();

 private:
  struct Memory {
    std::optional<base::Bytes> total;
    std::optional<base::Bytes> used;
    std::optional<base::Bytes> reserved;
  };

  std::optional<std::string> text(NvmlTextFunction function);
  std::optional<std::uint32_t> number(NvmlNumberFunction function);
  std::optional<std::uint32_t> number(NvmlSelectedNumberFunction function, unsigned selector);
  std::optional<std::uint64_t> wide(NvmlWideNumberFunction function);
  std::optional<base::Milliwatts> milliwatts(NvmlNumberFunction function);
  std::optional<bool> mode(NvmlTwoNumbersFunction function);
  std::optional<std::string> pci_address();
  std::optional<PciPlace> pci_place();
  std::optional<ComputeCapability> compute_capability();
  std::optional<CpuSet> cpus();
  std::optional<std::uint32_t> max_mig_devices();
  std::optional<std::uint32_t> numa_node();
  std::optional<std::int32_t> slowdown_temperature();
  Memory memory();
  std::optional<std::int32_t> temperature();
  std::optional<NvmlUtilization> utilization();
  std::optional<std::uint32_t> engine_percent(NvmlTwoNumbersFunction function);
  std::optional<std::uint64_t> ecc(unsigned error, unsigned counter);
  std::optional<std::uint64_t> pcie_bytes_per_second(unsigned direction);
  void read_fields(GpuReading& out);
  void read_nvlinks(model::GpuSlowMetrics& out);
  void read_memory_repairs(model::GpuSlowMetrics& out);
  std::optional<std::uint32_t> retired_pages(unsigned cause);
  std::optional<std::vector<GpuProcess>> processes();
  // Adds one of the driver's lists; false where it gives none.
  bool add_processes(std::vector<GpuProcess>& all, NvmlListFunction<NvmlProcessInfoV2> v2,
                     NvmlListFunction<NvmlProcessInfoV1> v1, std::uint32_t use);
  template <class Info>
  bool add_processes(std::vector<GpuProcess>& all, NvmlListFunction<Info> function,
                     std::uint32_t use);
  std::optional<std::vector<NvmlProcessSample>> process_samples(std::uint64_t seen_us);

  // False when the function is missing or refuses.
  template <class Function, class... Arguments>
  bool ok(Function function, Arguments... arguments) {
    if (function == nullptr || refusal_ != kNvmlSuccess) return false;
    return judge(function(device_, arguments...)) == kNvmlSuccess;
  }
  int judge(int code);

  const NvmlFunctions& f_;
  NvmlDevice* device_;
  int refusal_ = kNvmlSuccess;
};

}  // namespace gpu_platform::hardware
