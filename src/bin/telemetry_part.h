#pragma once

#include <memory>
#include <string>

#include "config/configuration.h"
#include "telemetry/fanout.h"
#include "telemetry/history/history_file.h"

namespace gpu_platform::bin {

// The part that keeps what was read: the history's file, and the way of frames to all that listen
// to them. It is open before the parts that read, and stops after them.
//
// Nothing of it can fail the daemon: where the history cannot be kept, the log says so.
//
// Thread: as CorePart; what it hands out is safe from any thread.
class TelemetryPart {
 public:
  // `data_dir` is there, and its lock is held (CorePart).
  static std::unique_ptr<TelemetryPart> open(const std::string& data_dir,
                                             const config::Configuration& configuration);

  // Adds another listener of all frames, before the probes start. It outlives them.
  void add(telemetry::FrameListener& listener) { fanout_.add(listener); }

  telemetry::FrameListener& frames() { return fanout_; }
  telemetry::History* history() { return file_.get(); }  // null: the site keeps none
  telemetry::Notes* notes() { return file_.get(); }      // as above

  // Writes what has come. Frames that come later are written by the destructor.
  void stop();

 private:
  telemetry::Fanout fanout_;
  std::unique_ptr<telemetry::HistoryFile> file_;
};

}  // namespace gpu_platform::bin
