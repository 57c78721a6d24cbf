#pragma once

#include <chrono>
#include <optional>

#include "base/units.h"
#include "hardware/readings.h"
#include "model/gpu_load.h"

namespace gpu_platform::monitoring {

// The load that others put on one GPU, smoothed and in coarse steps, so that the core hears of it
// only when it matters. Pure: the time comes with the readings.
class LoadWatch {
 public:
  // A reading while no job holds the GPU. One without utilization or memory changes nothing.
  void take(const hardware::GpuReading& reading, std::chrono::steady_clock::time_point at);
  // A reading while a job holds the GPU, with the memory that processes of no job have on it
  // (none: not known). Their part of the utilization cannot be told from the job's: it stays.
  void take_held(const hardware::GpuReading& reading, std::optional<base::Bytes> of_others);

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

  // A running mean of about a minute, in percent.
  std::optional<double> utilization_;
  std::chrono::steady_clock::time_point taken_at_;  // the latest reading in it
  std::optional<base::Bytes> memory_free_;          // known where utilization_ is
  std::optional<model::GpuLoad> told_;
};

}  // namespace gpu_platform::monitoring
