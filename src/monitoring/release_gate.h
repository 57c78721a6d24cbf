#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "execution/engine.h"
#include "monitoring/gpu_monitor.h"
#include "node/probe/probe_protocol.h"

namespace gpu_platform::monitoring {

// Stands between the engine and the core. It holds back the observation that nothing of an attempt
// is left until the driver confirms it: a reading that began after the observation shows on each of
// the attempt's GPUs no process that has ended, and no more memory in use than before the GPU was
// used. Until then the GPUs are CLEANING. Every other observation passes at once.
//
// Nothing is lost with this object: the engine repeats the observation to the next daemon. A GPU
// without readings is not waited for, and no job is placed on it.
class ReleaseGate : public execution::ObservationSink {
 public:
  // Asks for readings of a node's GPUs, these at least. Never waits, and asks nothing of the gate.
  using ReadNow =
      std::function<void(const std::string& node, const std::vector<std::string>& uuids)>;
  // Tells people that a GPU does not come free.
  using Alert = std::function<void(const std::string& text)>;

  ReleaseGate(execution::ObservationSink& sink, SnapshotNow snapshot, ReadNow read_now,
              Alert alert);
  ~ReleaseGate() override;

  // Asks no more questions; what waits is held back for ever. To be called before what read_now
  // uses is gone. Once, or never.
  void stop();

  // Any thread may call it.
  void observe(execution::Observation observation) override;
  // The probe runner's thread calls it. `uuids` are in the order of the readings.
  void take_readings(const std::string& node, const std::vector<std::string>& uuids,
                     const node::ProbeReadings& readings);

 private:
  using SteadyClock = std::chrono::steady_clock;
  struct GpuAwaited {
    std::string node;
    std::string uuid;
    std::string why;  // what the last reading still showed
  };
  struct Waiting {
    std::vector<GpuAwaited> gpus;
    execution::Cleaned cleaned;
    std::int64_t cleaned_ns = 0;  // on the boot clock
    SteadyClock::time_point since;
    SteadyClock::time_point ask_at;
    std::chrono::milliseconds pause;  // before the next question
    bool is_alerted = false;
  };

  std::vector<GpuAwaited> gpus_of(model::AttemptId attempt) const;
  std::string what_is_left(const std::string& uuid, const hardware::GpuReading& reading);
  using Questions = std::map<std::string, std::vector<std::string>>;  // GPUs by node
  static void add_questions(const Waiting& waiting, Questions& questions);
  void ask(const Questions& questions) const;
  void run();

  execution::ObservationSink& sink_;
  const SnapshotNow snapshot_;
  const ReadNow read_now_;
  const Alert alert_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_, as all below
  SteadyClock::time_point asleep_until_ = SteadyClock::time_point::min();  // of the thread
  std::map<model::AttemptId, Waiting> waiting_;
  std::map<std::string, base::Bytes>
      base_line_;  // least memory seen in use without processes, by UUID
  std::thread thread_;
};

}  // namespace gpu_platform::monitoring
