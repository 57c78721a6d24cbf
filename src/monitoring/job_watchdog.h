#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "controller/snapshot.h"
#include "execution/engine.h"
#include "model/job.h"
#include "model/node.h"
#include "monitoring/gpu_monitor.h"
#include "monitoring/hang_watch.h"
#include "node/probe/probe_runner.h"

namespace gpu_platform::monitoring {

// Stands before the observer of the probes' reports: passes each on, and after readings of a node
// tells the core which jobs on it hang, by one piece of evidence for each of their GPUs. It tells
// again with each reading until the attempt is told to stop. Jobs without a hang_timeout cost a
// look at the holders of the node's GPUs.
//
// All that it refers to outlives it. Thread: the probe runner's.
class JobWatchdog : public node::ProbeListener {
 public:
  JobWatchdog(node::ProbeListener& next, execution::ObservationSink& sink, SnapshotNow snapshot,
              const GpuMonitor& monitor, HangWatch::OutputMark output_of)
      : next_(next),
        sink_(sink),
        snapshot_(std::move(snapshot)),
        monitor_(monitor),
        output_of_(std::move(output_of)) {}

  void on_report(node::ProbeReport report) override;

 private:
  void take_readings(const std::string& node_name);
  void tell(const controller::Snapshot& snapshot, model::AttemptId attempt);

  node::ProbeListener& next_;
  execution::ObservationSink& sink_;
  SnapshotNow snapshot_;
  const GpuMonitor& monitor_;
  HangWatch::OutputMark output_of_;
  HangWatch watch_;
};

// Returns how long a job may be quiet on the clock that may be so while it is awake: one that takes
// turns on the GPU of this holder is awake for its share of the time, or longer.
base::Duration hang_timeout_on_clock(base::Duration awake, const model::GpuHolder& holder);

// Returns a number that changes whenever something is written to the file, which may be replaced;
// nothing if it cannot be seen.
std::optional<std::uint64_t> output_mark_of(const std::string& path);

}  // namespace gpu_platform::monitoring
