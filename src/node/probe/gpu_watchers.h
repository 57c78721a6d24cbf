#pragma once

#include <atomic>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hardware/gpu_library.h"
#include "node/probe/driver_thread.h"
#include "node/probe/event_queue.h"

// The tasks of the probe beside polling, each on a thread and with a driver session of its own.

namespace gpu_platform::node {

// The sources of GPU data.
struct GpuSource {
  std::string library;     // NVML
  std::string nvidia_smi;  // asked where NVML cannot be opened; empty: nothing is
};

struct OpenedLibrary {
  std::unique_ptr<hardware::GpuLibrary> library;
  std::string fallback;  // why it is not NVML, empty where it is
};

// Opens NVML, or nvidia-smi if NVML cannot be opened.
std::expected<OpenedLibrary, hardware::LibraryProblem> open_library(const GpuSource& source);

// The daemon's end as the threads see it: messages go out whole, in the order of each thread.
class ProbeOutput {
 public:
  explicit ProbeOutput(int fd) : fd_(fd) {}

  // False when the daemon's end is full or gone. Any thread.
  bool send(const std::string& bytes) const;

 private:
  const int fd_;
};

// Waits for events of the driver and passes them on; joins equal ones in a row, and keeps a bounded
// number of events while the daemon does not take them.
class EventWatcher final : public DriverThread {
 public:
  // `output` outlives this.
  EventWatcher(std::string library, const ProbeOutput& output)
      : DriverThread("driver-events"), library_(std::move(library)), output_(output) {}

  // For half a second from now, says again and again until when the driver was listened to
  // (ProbeEvents::until_ns); at once if the thread does not listen. Call it from the probe's main
  // thread.
  void report_progress();

 private:
  base::Duration turn() override;
  void release() override;
  bool hand_on();
  base::Duration longest_wait() const;

  const std::string library_;
  const ProbeOutput& output_;
  std::unique_ptr<hardware::GpuEventSource> source_;
  EventQueue kept_;
  std::atomic<bool> is_listening_ = false;
  std::atomic<std::int64_t> reports_until_ns_ = 0;  // on the boot clock
};

// Takes the slow readings, at long intervals, and the loads of processes where a GPU has several.
class SlowReader final : public DriverThread {
 public:
  struct Intervals {
    base::Duration readings;
    base::Duration loads;
  };
  SlowReader(GpuSource source, Intervals intervals)
      : DriverThread("slow-readings"), source_(std::move(source)), intervals_(intervals) {}

  // Sets the number of GPUs; call it before resume(). Forgets earlier readings.
  void set_gpu_count(std::size_t count);

  // Adds the latest that is known of the GPU to a reading of it, which also says whether the loads
  // of its processes are of interest. Any thread may call it.
  void complete(hardware::GpuReading& reading);
  // The energy was read apart from the other slow metrics, just now. Any thread may call it.
  void take_energy(std::uint32_t index, std::optional<std::uint64_t> millijoules);

 private:
  struct Gpu {
    std::optional<model::GpuSlowMetrics> slow;
    std::int64_t energy_ns = 0;  // when the energy was read apart, on the boot clock
    bool has_several = false;    // processes
    std::vector<hardware::ProcessLoad> loads;
  };

  base::Duration turn() override;
  void release() override;
  void read_all(std::size_t count);
  void read_loads(std::size_t count);

  const GpuSource source_;
  const Intervals intervals_;
  std::unique_ptr<hardware::GpuLibrary> library_;
  std::int64_t next_readings_ns_ = 0;  // on the boot clock
  std::int64_t next_loads_ns_ = 0;
  mutable std::mutex mutex_;  // over what follows
  std::vector<Gpu> gpus_;
};

}  // namespace gpu_platform::node
