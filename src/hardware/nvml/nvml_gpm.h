#pragma once

#include <array>
#include <memory>

#include "hardware/nvml/nvml_functions.h"
#include "model/gpu_metrics.h"

namespace gpu_platform::hardware {

// What the counters of one GPU (GPM: Hopper and later) say of the time between two readings. Keeps
// the sample of the last reading. A driver or GPU without GPM costs one question altogether.
class NvmlGpm {
 public:
  // `functions` outlives this.
  NvmlGpm(const NvmlFunctions& functions, NvmlDevice* device);
  NvmlGpm(const NvmlGpm&) = delete;
  NvmlGpm& operator=(const NvmlGpm&) = delete;
  ~NvmlGpm();

  NvmlDevice* device() const { return device_; }

  // Takes a sample, and fills in the shares of the time since the last one; nothing the first time.
  // Some 40 us.
  void read(model::GpuMetrics& out);

 private:
  bool is_supported() const;
  void fill(model::GpuMetrics& out);

  const NvmlFunctions& f_;
  NvmlDevice* const device_;
  std::array<NvmlGpmSample*, 2> samples_{};   // null: GPM is not there
  bool has_last_ = false;                     // the first of the two
  std::unique_ptr<NvmlGpmMetrics> question_;  // 13 KB
};

}  // namespace gpu_platform::hardware
