#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "hardware/readings.h"

// Reports the acceptance of a machine with GPUs: everything that our loader reads, beside
// nvidia-smi's values of the same. Reads only; no setting of a GPU is changed.

namespace gpu_platform::node {

struct ReportSources {
  std::string library;     // NVML
  std::string nvidia_smi;  // empty: nothing is compared
  std::string cuda;        // libcuda, opened to look for functions; none is called
};

// One datum as two sources tell it.
struct Comparison {
  std::uint32_t gpu = 0;
  std::string datum;
  std::string ours;  // "not known" where the source does not tell
  std::string theirs;
  bool agrees = false;  // equal, or as near as a moving value can be; a source that does not know
                        // contradicts nothing

  friend bool operator==(const Comparison&, const Comparison&) = default;
};

// Pure. GPUs are matched by UUID; one that only one side has is a comparison that does not agree.
std::vector<Comparison> compare_descriptions(const std::vector<hardware::GpuDescription>& ours,
                                             const std::vector<hardware::GpuDescription>& theirs);
// Pure. Matched by index. Temperature, power, clocks and memory may have moved in between.
std::vector<Comparison> compare_readings(const std::vector<hardware::GpuReading>& ours,
                                         const std::vector<hardware::GpuReading>& theirs);

// Blocks for as long as the driver does.
nlohmann::ordered_json make_gpu_report(const ReportSources& sources);

// The sizes of the structures that we declare, by the names of the vendor's header.
nlohmann::ordered_json struct_sizes();

// The results of an acceptance as a page for people. Takes what scripts/gpu_acceptance wrote;
// a part that is missing is left out.
std::string results_page(const nlohmann::json& results);

}  // namespace gpu_platform::node
