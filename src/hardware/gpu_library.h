#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <vector>

#include "hardware/readings.h"

namespace gpu_platform::hardware {

// An open GPU driver library. Calls may block for as long as the driver does, so only the probe
// makes them; one thread at a time for each object, but several objects may be used at once. A
// function that the library lacks, or that the board does not support, costs its datum and nothing
// else.
class GpuLibrary {
 public:
  virtual ~GpuLibrary() = default;

  virtual DriverDescription describe_driver() = 0;

  // Asks the driver anew for its GPUs. Readings by index refer to the latest list.
  virtual std::expected<std::vector<GpuDescription>, LibraryProblem> list_gpus() = 0;

  // Returns the links between the GPUs of the latest list. Pairs without a known link are left out.
  virtual std::vector<GpuLink> links() = 0;

  // `index` is one of the latest list. `slow` is left empty.
  virtual GpuReading read(std::uint32_t index) = 0;

  // Takes tens of milliseconds for each GPU. Empty where the GPU does not answer.
  virtual model::GpuSlowMetrics read_slow(std::uint32_t index) = 0;

  // Returns the millijoules since the driver was loaded, as read_slow() does. Takes 4 ms on an
  // H100. Empty where the GPU or the driver does not say.
  virtual std::optional<std::uint64_t> read_energy(std::uint32_t index) = 0;

  // Returns the processes that computed since the last call for this GPU, ascending by pid. Takes a
  // millisecond or two. Empty: there are none, or the driver does not say.
  virtual std::vector<ProcessLoad> read_loads(std::uint32_t index) = 0;
};

// An open subscription to what a driver tells of its own accord. Used by one thread.
class GpuEventSource {
 public:
  virtual ~GpuEventSource() = default;

  // Waits for the next event up to a time; none when it passed. A problem ends the subscription:
  // open another.
  virtual std::expected<std::optional<GpuEvent>, LibraryProblem> wait(base::Duration limit) = 0;
};

}  // namespace gpu_platform::hardware
