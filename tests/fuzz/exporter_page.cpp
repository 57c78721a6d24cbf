#include "base/check.h"
#include "execution/kubernetes/exporter/exported_gpus.h"
#include "execution/kubernetes/exporter/exposition.h"
#include "target.h"

// The target reads the page of an exporter, which any pod in the exporter's place can write.

namespace gpu_platform::fuzz {

void run(std::string_view input) {
  execution::read_exposition(input, [&](const execution::Sample& sample) {
    CHECK(!sample.name.empty() && sample.labels.size() <= execution::kMaxSampleLabels);
  });
  for (const auto& [uuid, gpu] : execution::gpus_of_page(input)) {
    CHECK(!uuid.empty() && gpu != model::GpuMetrics());
    CHECK(gpu.utilization_percent.value_or(0) <= 100 && gpu.sm_active.value_or(0) <= 1000);
  }
}

std::vector<std::string> seeds() {
  return {
      "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n"
      "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n"
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-1\",modelName=\"NVIDIA H100\"} 97\n"
      "DCGM_FI_PROF_SM_ACTIVE{gpu=\"0\",UUID=\"GPU-1\",GPU_I_ID=\"\"} 0.871400 1767225600000\n"
      "DCGM_FI_DEV_POWER_USAGE{UUID=\"GPU-1\",pod=\"a\\\"b\\\\c\\nd\",} 4.1e+02\n"
      "DCGM_FI_DEV_ROW_REMAP_FAILURE{UUID=\"GPU-1\"} 1\n",
      "DCGM_FI_DEV_FB_USED{UUID=\"GPU-1\"} NaN\nup{} +Inf\n"};
}

}  // namespace gpu_platform::fuzz
