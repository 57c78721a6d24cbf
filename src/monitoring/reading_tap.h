#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "monitoring/gpu_monitor.h"
#include "node/probe/probe_runner.h"
#include "telemetry/attribution.h"
#include "telemetry/frame.h"

namespace gpu_platform::monitoring {

// Stands before the observers of the probes' reports: passes each on, and makes frames of what was
// read: one of each GPU that answers, one of the host, and one of the use that each attempt makes
// of a GPU of which it has a part, also while no other has one. All of one reading go to the
// listener together.
//
// All that it refers to outlives it. Thread: the probe runner's.
class ReadingTap final : public node::ProbeListener {
 public:
  // Returns the attempt with this process on the GPU, by the reading that was passed on.
  using OwnerOf =
      std::function<std::optional<model::AttemptId>(const std::string& uuid, std::uint32_t pid)>;
  using Clock = std::function<base::Instant()>;

  // `wall` is the time of day.
  ReadingTap(node::ProbeListener& next, SnapshotNow snapshot, OwnerOf owner_of,
             telemetry::FrameListener& frames, Clock wall)
      : next_(next),
        snapshot_(std::move(snapshot)),
        owner_of_(std::move(owner_of)),
        frames_(frames),
        wall_(std::move(wall)) {}

  void on_report(node::ProbeReport report) override;

 private:
  struct SeenGpu {
    std::string uuid;
    std::optional<base::Milliwatts> idle_power;  // the least that it drew while it did nothing
  };
  // A GPU of a reading of which attempts have parts.
  struct Shared {
    std::string uuid;
    telemetry::SharedGpu gpu;                     // without its processes
    std::vector<hardware::GpuProcess> processes;  // empty where they are not told
    bool tells_processes = false;
  };
  struct Taken {
    std::vector<telemetry::Frame> frames;
    std::vector<Shared> shared;
  };

  void take_inventory(const std::string& node, const hardware::Inventory& inventory);
  void forget_gone_nodes(const controller::Snapshot& snapshot);
  Taken take_readings(const std::string& node, const node::ProbeReadings& readings);
  std::vector<telemetry::Frame> uses_of(const std::string& node, Shared shared);

  node::ProbeListener& next_;
  const SnapshotNow snapshot_;
  const OwnerOf owner_of_;
  telemetry::FrameListener& frames_;
  const Clock wall_;
  std::map<std::string, std::vector<SeenGpu>> gpus_;  // by node; by the driver's index
};

}  // namespace gpu_platform::monitoring
