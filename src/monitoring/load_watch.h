#pragma once

#include <optional>

#include "hardware/readings.h"
#include "model/gpu_load.h"

namespace gpu_platform::monitoring {

// The load that others put on one GPU, smoothed and in coarse steps, so that the core hears of it
// only when it matters. Pure: time is counted in readings.
class LoadWatch {
 public:
  // A reading while no job holds the GPU. One without utilization or memory changes nothing.
  void take(const hardware::GpuReading& reading);

  // Returns whether the load is further from what was told than a step, or is to be told first, or
  // not any more.
  bool has_moved(bool is_wanted) const;
  // Returns the load, in steps of 5 % and 256 MiB, rounded against the GPU, and takes it as told.
  // Nothing if nothing is known yet.
  std::optional<model::GpuLoad> tell();
  // Returns nothing, and takes that as told.
  std::optional<model::GpuLoad> forget();

 private:
  model::GpuLoad rounded() const;

  // A running mean, of which each reading is a twelfth; hundredths of a percent.
  std::optional<std::int64_t> utilization_;
  std::optional<base::Bytes> memory_free_;
  std::optional<model::GpuLoad> told_;
};

}  // namespace gpu_platform::monitoring
