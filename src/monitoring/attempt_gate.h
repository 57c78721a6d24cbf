#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "execution/engine.h"
#include "monitoring/gpu_monitor.h"
#include "monitoring/seen_process.h"
#include "node/probe/probe_protocol.h"

namespace gpu_platform::monitoring {

// Returns whether a GPU may be the cause of this end: the attempt ran, failed, and was not stopped
// by the platform.
bool has_failed_of_itself(const execution::Ended& ended);

// Stands between the engine and the core. It holds back two observations of an attempt with GPUs
// until readings that began after them:
//
// - That it has failed of itself, until each of its GPUs was read once and the probe has listened
//   to its driver for a moment longer, so that the core hears of the end after what the driver had
//   to report (XIDs, which come up to 0.13 s later). An end never waits for longer than a few
//   seconds, for events half a second, and not for a node whose probe is gone.
// - That nothing of it is left, until the readings show none of its processes on any of its GPUs,
//   nor, where it is the last attempt on the GPU, more memory in use than before the GPU was used.
//   Until then it holds its GPUs, or its parts of them, CLEANING, without a time limit.
//
// One question to a node's probe serves all that waits there. The first one after an end also asks
// for the energy of its GPUs, which closes the account of the attempt. The observations of an
// attempt keep their order. Every other one passes at once.
//
// What is asked is whether the processes of *this attempt* are gone, not whether the GPU is empty:
// a process of another attempt delays nothing. What belongs to no known attempt (an ended process
// that was never seen alive, memory in use by no process) is laid to the last attempt that leaves
// the GPU. While processes live there that are not always there, its memory is not looked at.
//
// Nothing is lost with this object: the engine repeats what was held back to the next daemon. A GPU
// without readings is not waited for, and no job is placed on it.
class AttemptGate : public execution::ObservationSink {
 public:
  // Asks for readings of a node's GPUs, these at least, and for word of its events. Never waits,
  // and asks nothing of the gate.
  using ReadNow = std::function<void(const std::string& node, const node::ReadNow& wanted)>;
  // Tells people that a GPU does not come free.
  using Alert = std::function<void(const std::string& text)>;
  // Adds to an end what is known of it by then. Called with a lock held: it must not call the gate.
  using Complete = std::function<void(execution::Ended& ended)>;
  // Hears that an attempt has failed of itself. Any thread.
  using Failed = std::function<void(const execution::Ended& ended)>;

  static constexpr std::chrono::milliseconds kEndTimeout{2000};
  static constexpr std::chrono::milliseconds kEventsTimeout{500};
  // How long after an end the driver may still tell why.
  static constexpr std::chrono::milliseconds kEventsDelay{150};

  // `sink` is called with a lock held: it must not call the gate. An end waits for `end_timeout`
  // at most, and for events no longer than `events_timeout`.
  AttemptGate(execution::ObservationSink& sink, SnapshotNow snapshot, ReadNow read_now, Alert alert,
              std::chrono::milliseconds end_timeout = kEndTimeout,
              std::chrono::milliseconds events_timeout = kEventsTimeout);
  ~AttemptGate() override;

  // From now on every end is completed by it before it passes. Before the first observation.
  void complete_ends_with(Complete complete);
  // From now on it hears of each failure before its end is held. It may be repeated. Before the
  // first observation.
  void tell_failures_to(Failed failed);

  // Asks no more questions. Ends pass, now and later; releases are held back for ever. To be called
  // before what read_now uses is gone. Once, or never.
  void stop();

  // Any thread may call it.
  void observe(execution::Observation observation) override;
  // The probe runner's thread calls these. `uuids` are in the order of the readings.
  void take_readings(const std::string& node, const std::vector<std::string>& uuids,
                     const node::ProbeReadings& readings, const SeenProcesses& seen);
  // What the node's driver told before `until_ns` (boot clock) has been taken; 0: that is not said.
  void take_events(const std::string& node, std::int64_t until_ns);
  // The node's probe died or hangs: until its next readings no end waits for them.
  void lose_readings(const std::string& node);

 private:
  using SteadyClock = std::chrono::steady_clock;
  struct AwaitedGpu {
    std::string node;
    std::string uuid;
    model::GpuRef place;
    std::string why = {};  // what the last reading still showed
  };
  struct HeldEnd {
    execution::Ended ended;
    std::int64_t ended_ns = 0;       // on the boot clock
    std::vector<AwaitedGpu> unread;  // since the end
    std::set<std::string> unheard;   // nodes whose events of that time may be on their way
    SteadyClock::time_point passes_at;
    SteadyClock::time_point hears_until;
  };
  struct HeldRelease {
    execution::Cleaned cleaned;
    std::int64_t cleaned_ns = 0;       // on the boot clock
    std::vector<AwaitedGpu> occupied;  // as far as is known
    SteadyClock::time_point since;
    bool is_alerted = false;
  };
  // What is held of one attempt.
  struct Held {
    std::optional<HeldEnd> end;
    std::optional<HeldRelease> release;
    SteadyClock::time_point ask_at;
    std::chrono::milliseconds pause{0};  // before the next question
  };
  // What a GPU is like when no attempt has a process on it.
  struct BaseLine {
    std::optional<base::Bytes> empty;  // the least memory seen in use without processes
    // The least beside the memory of these processes, which are there all the time: a display's, a
    // server's. Another set of them begins anew.
    std::optional<base::Bytes> beside;
    std::vector<std::uint32_t> residents;  // pids, ascending
  };
  struct NodeReadings;
  using Questions = std::map<std::string, std::set<std::string>>;  // GPUs by node

  std::vector<AwaitedGpu> gpus_of(model::AttemptId attempt) const;
  bool hold_end(const execution::Ended& ended);
  bool hold_release(const execution::Cleaned& cleaned);
  void begin_asking(Held& held);
  static void add_questions(const Held& held, Questions& questions);
  void ask(const Questions& questions, node::ReadNow wanted = {}) const;
  void forget_what_has_left(const controller::Snapshot& snapshot);
  void measure_base_lines(const NodeReadings& now);
  std::string what_is_left(model::AttemptId attempt, const AwaitedGpu& gpu,
                           const NodeReadings& now) const;
  bool is_last_on(model::AttemptId attempt, model::GpuRef place,
                  const controller::Snapshot& snapshot) const;
  void pass(execution::Ended ended);
  void pass_what_may();
  bool pass_what_may(Held& held);
  SteadyClock::time_point let_overdue_ends_pass(SteadyClock::time_point now);
  void run();

  execution::ObservationSink& sink_;
  const SnapshotNow snapshot_;
  const ReadNow read_now_;
  const Alert alert_;
  Complete complete_;
  Failed failed_;  // set before the first observation
  const std::chrono::milliseconds end_timeout_;
  const std::chrono::milliseconds events_timeout_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_, as all below
  SteadyClock::time_point asleep_until_ = SteadyClock::time_point::min();  // of the thread
  std::map<model::AttemptId, Held> held_;
  std::set<model::AttemptId> left_;  // whose release has passed, until the core shows it
  std::set<std::string, std::less<>> nodes_read_;  // whose probe's last report was a reading
  std::map<std::string, BaseLine, std::less<>> base_lines_;  // by UUID
  std::thread thread_;
};

}  // namespace gpu_platform::monitoring
