#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "hardware/gpu_library.h"
#include "telemetry/use_recorder.h"

namespace gpu_platform::cli {

// Which GPUs of a machine are meant: "all", or indices and UUIDs between commas. The error is a
// sentence.
std::expected<std::vector<hardware::GpuDescription>, std::string> chosen_gpus(
    const std::vector<hardware::GpuDescription>& gpus, std::string_view words);

// Reads GPUs of this machine into a summary. It calls the driver, and may hang with it. One thread;
// the library outlives it.
class GpuSampler {
 public:
  // How often the energy, and what else takes long, is read. It is read at both ends, too.
  static constexpr base::Duration kSlowEvery = base::seconds(30);

  GpuSampler(hardware::GpuLibrary& library, const std::vector<hardware::GpuDescription>& gpus,
             base::Duration interval, base::Instant begin);

  // Reads each GPU once. A GPU that does not answer gives no reading.
  void read(base::Instant now);
  // Reads for the last time.
  void end(base::Instant now);

  const telemetry::UseSummary& summary() const { return recorder_.summary(); }

 private:
  void read_gpus(base::Instant now, bool wants_slow);

  hardware::GpuLibrary& library_;
  std::vector<std::uint32_t> indices_;
  std::vector<std::string> uuids_;
  telemetry::UseRecorder recorder_;
  base::Instant next_slow_;
};

}  // namespace gpu_platform::cli
