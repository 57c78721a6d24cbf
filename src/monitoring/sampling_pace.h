#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model/job_spec.h"
#include "monitoring/attempt_gate.h"
#include "monitoring/gpu_monitor.h"
#include "node/probe/probe_runner.h"

namespace gpu_platform::monitoring {

// Stands before the observers of the probes' reports: passes each on, and has the GPUs of running
// attempts that ask for it read each second, and no others. An attempt is seen with the first
// reading of its node after its start, for which BeginReader asks. Readings of the GPUs alone also
// find its end.
class SamplingPace final : public node::ProbeListener {
 public:
  using ReadNow = AttemptGate::ReadNow;
  using IsMonitored = std::function<bool(const model::JobSpec& spec)>;

  static constexpr std::chrono::milliseconds kPause{1000};
  // Where all GPUs are read as often as this, it is of no use.
  static constexpr base::Duration kLongestInterval = base::seconds(1);

  // All that it refers to outlives it; what read_now uses, until its stop().
  SamplingPace(node::ProbeListener& next, SnapshotNow snapshot, ReadNow read_now,
               IsMonitored is_monitored);
  ~SamplingPace() override;
  SamplingPace(const SamplingPace&) = delete;
  SamplingPace& operator=(const SamplingPace&) = delete;

  // Asks for no more readings. To be called before what read_now uses is gone.
  void stop();

  // Of the probe runner's thread.
  void on_report(node::ProbeReport report) override;

 private:
  std::vector<std::string> monitored_on(const std::string& node) const;
  void run();

  node::ProbeListener& next_;
  const SnapshotNow snapshot_;
  const ReadNow read_now_;
  const IsMonitored is_monitored_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;                                 // guarded by mutex_, as all below
  std::map<std::string, std::vector<std::string>> gpus_;  // UUIDs by node, where there are some
  std::thread thread_;
};

}  // namespace gpu_platform::monitoring
