#include "model/gpu_load.h"

#include <algorithm>

#include <fmt/format.h>

namespace gpu_platform::model {

namespace {

double gib(base::Bytes bytes) {
  return static_cast<double>(bytes.value()) / static_cast<double>(base::kGiB.value());
}

}  // namespace

std::uint32_t availability(const GpuLoad& load, base::Bytes memory, const LoadRules& rules) {
  const std::int64_t weights = std::int64_t{rules.memory_weight} + rules.utilization_weight;
  if (weights == 0 || memory.value() <= 0) return 1000;
  const std::int64_t free = std::clamp<std::int64_t>(load.memory_free.value(), 0, memory.value());
  // In MiB, so that the products fit.
  const std::int64_t all_mib = std::max<std::int64_t>(1, memory.value() >> 20);
  const std::int64_t of_memory = std::int64_t{rules.memory_weight} * 1000 * (free >> 20) / all_mib;
  const std::int64_t idle = 100 - std::min<std::int64_t>(load.utilization_percent, 100);
  const std::int64_t of_time = std::int64_t{rules.utilization_weight} * 10 * idle;
  return static_cast<std::uint32_t>((of_memory + of_time) / weights);
}

std::string why_too_loaded(const GpuLoad& load, const LoadRules& rules) {
  const base::Bytes min_memory = base::kMiB * rules.min_memory_mb;
  if (load.memory_free < min_memory) {
    return fmt::format("{:.1f} GiB of its memory are free, and gpu_selection wants {:.1f} GiB",
                       gib(load.memory_free), gib(min_memory));
  }
  if (load.utilization_percent > rules.max_utilization) {
    return fmt::format("others use it for {} % of the time, and gpu_selection allows {} %",
                       load.utilization_percent, rules.max_utilization);
  }
  return {};
}

}  // namespace gpu_platform::model
