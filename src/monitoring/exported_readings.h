#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "execution/engine.h"
#include "host/user_directory.h"
#include "model/gpu_metrics.h"
#include "model/gpu_reading.h"
#include "monitoring/gpu_monitor.h"
#include "monitoring/reading_tap.h"
#include "node/probe/probe_runner.h"
#include "telemetry/frame.h"

namespace gpu_platform::monitoring {

// The readings of GPUs on nodes that have no probe of the platform: others read them. They lead to
// frames, as those of probes do. They have no processes, so they find no unmanaged ones and confirm
// no release, and no evidence of health is made of them: the node's own driver and its cluster tell
// of faults.
//
// All that it refers to outlives it. Thread: one that takes; latest() from any.
class ExportedReadings final : private node::ProbeListener {
 public:
  // A reading that is older is no latest one: what reads may have gone.
  static constexpr base::Duration kCurrentFor = base::minutes(5);

  // `wall` is the time of day.
  ExportedReadings(execution::ObservationSink& sink, SnapshotNow snapshot,
                   host::UserDirectory& users, telemetry::FrameListener& frames,
                   ReadingTap::Clock wall);

  // Takes what was read of the GPUs of a node, by UUID. What the node does not have, by the
  // published state, is left out. Returns the number of GPUs that were taken.
  std::size_t take(const std::string& node, std::map<std::string, model::GpuMetrics> gpus);

  // Null: nothing was read of it for kCurrentFor.
  std::shared_ptr<const model::GpuReading> latest(std::string_view uuid) const;

 private:
  void on_report(node::ProbeReport report) override;

  const SnapshotNow snapshot_;
  const ReadingTap::Clock wall_;
  GpuMonitor monitor_;
  ReadingTap tap_;
  std::vector<std::string> uuids_;  // of the readings that are being taken, by index
};

}  // namespace gpu_platform::monitoring
