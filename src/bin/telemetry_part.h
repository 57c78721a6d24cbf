#pragma once

#include <memory>
#include <span>
#include <string>

#include "api/reading_hub.h"
#include "bin/core_part.h"
#include "bin/kpi_keeper.h"
#include "bin/use_keeper.h"
#include "config/configuration.h"
#include "telemetry/fanout.h"
#include "telemetry/history/history_file.h"

namespace gpu_platform::bin {

// Where a daemon with this data directory keeps its history.
std::string history_path(const std::string& data_dir);

// The part that keeps what was read: the history's file, the summaries of what jobs did on their
// GPUs, what the key figures need of ended jobs, and the way of frames to all that listen to them.
// It is open before the parts that read, and stops after them.
//
// Nothing of it can fail the daemon: where the history cannot be kept, the log says so.
//
// Thread: as CorePart; what it hands out is safe from any thread.
class TelemetryPart {
 public:
  TelemetryPart();

  // `data_dir` is there, and its lock is held (CorePart).
  static std::unique_ptr<TelemetryPart> open(const std::string& data_dir,
                                             const config::Configuration& configuration);

  // From now on there are summaries of what the core's jobs do. Once, when the core is recovered
  // and not started; it outlives stop().
  void follow(CorePart& core);

  // Adds another listener of all frames, before the probes start. It outlives them.
  void add(telemetry::FrameListener& listener) { fanout_.add(listener); }

  telemetry::FrameListener& frames() { return fanout_; }
  telemetry::History* history() { return file_.get(); }  // null: the site keeps none
  telemetry::Notes* notes() { return file_.get(); }      // as above
  UseKeeper& uses() { return *uses_; }
  api::ReadingHub& live_readings() { return live_readings_; }
  const KpiKeeper* kpis() const { return kpis_.get(); }  // null before follow()
  // The jobs have left the history.
  void forget(std::span<const model::JobId> jobs);

  // Writes what has come. Frames that come later are written by the destructor.
  void stop();

 private:
  telemetry::Fanout fanout_;
  api::ReadingHub live_readings_;
  std::unique_ptr<telemetry::HistoryFile> file_;
  std::unique_ptr<UseKeeper> uses_;  // writes into the file
  std::unique_ptr<KpiKeeper> kpis_;  // asks uses_
};

}  // namespace gpu_platform::bin
