#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "controller/snapshot.h"
#include "execution/engine.h"
#include "hardware/readings.h"
#include "monitoring/attempt_gate.h"
#include "monitoring/gpu_monitor.h"
#include "monitoring/memory_watch.h"
#include "monitoring/seen_process.h"
#include "node/probe/probe_protocol.h"

namespace gpu_platform::monitoring {

// Holds jobs to the memory of their parts of GPUs, where nothing stronger does: has such GPUs read
// each second or two, and no others; warns a job that is over, in its output, and tells the core if
// it is to be stopped. The ends of attempts are completed with what it knows: how much the attempt
// used, or whose use made it fail.
//
// Where jobs take turns on a GPU, it also tells of readings that show the GPU idle.
//
// A part is first watched when a reading in the probe's interval shows it. Nothing is watched while
// the probe is gone or the GPU does not answer. What it knows is lost with it.
class MemoryWatchdog {
 public:
  using ReadNow = AttemptGate::ReadNow;
  // Writes to the job's output that it is over its part. Never waits.
  using Warn = std::function<void(const MemoryWatch::Excess& excess)>;
  // Hears that a GPU on which jobs take turns does nothing. Never waits.
  using TellIdle = std::function<void(const std::string& uuid)>;

  static constexpr std::chrono::milliseconds kPause{2000};
  static constexpr std::chrono::milliseconds kClosePause{1000};  // while a part is nearly full
  // An older reading says nothing of the turn that is now.
  static constexpr base::Duration kOldestIdle = base::milliseconds(500);

  // All that it refers to outlives it, or its stop().
  MemoryWatchdog(execution::ObservationSink& sink, SnapshotNow snapshot, ReadNow read_now,
                 Warn warn, TellIdle tell_idle);
  ~MemoryWatchdog();
  MemoryWatchdog(const MemoryWatchdog&) = delete;
  MemoryWatchdog& operator=(const MemoryWatchdog&) = delete;

  // Asks for no more readings. To be called before what read_now uses is gone.
  void stop();

  // The probe runner's thread calls these. `uuids` are in the order of the readings.
  void take_readings(const std::string& node, const std::vector<std::string>& uuids,
                     const node::ProbeReadings& readings, const SeenProcesses& seen);
  void lose_readings(const std::string& node);

  // Adds what is known to an end. Any thread.
  void complete(execution::Ended& ended);

 private:
  using SteadyClock = std::chrono::steady_clock;
  using Place = std::pair<std::string, std::string>;  // node and UUID

  void plan_next(const std::string& node, const std::string& uuid, bool is_needed);
  void tell(const std::string& node, const std::string& uuid,
            const std::vector<MemoryWatch::Excess>& found);
  void run();

  execution::ObservationSink& sink_;
  const SnapshotNow snapshot_;
  const ReadNow read_now_;
  const Warn warn_;
  const TellIdle tell_idle_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_, as all below
  MemoryWatch watch_;
  std::map<Place, SteadyClock::time_point> due_;  // when watched GPUs are to be read again
  std::thread thread_;
};

// "uses 23.1 GiB of the 20 GiB of its part"; "used" where it is over.
std::string in_words(const MemoryWatch::Excess& excess, std::string_view verb);

}  // namespace gpu_platform::monitoring
