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

// Stands between the engine and the core. It holds back two observations of an attempt with GPUs
// until readings that began after them:
//
// - That it has failed of itself, until each of its GPUs was read once and the probe has listened
//   to its driver for a moment longer, so that the core hears of the end after what the driver had
//   to report (XIDs, which come up to 0.13 s later). An end never waits for longer than a few
//   seconds, for events half a second, and not for a node whose probe is gone.
// - That nothing of it is left, until the readings show on none of its GPUs a process of it that
//   has ended, nor more memory in use than before the GPU was used. Until then the GPUs are
//   CLEANING, without a time limit.
//
// One question to a node's probe serves all that waits there. The observations of an attempt keep
// their order. Every other one passes at once.
//
// What is asked is whether the processes of *this attempt* are gone: an ended process of another
// attempt delays nothing. That suffices for whole GPUs. A GPU that several attempts share will need
// the memory in use by no process told apart from that of living holders, too; while any process
// lives on a GPU, its memory is not looked at.
//
// Nothing is lost with this object: the engine repeats what was held back to the next daemon. A GPU
// without readings is not waited for, and no job is placed on it.
class AttemptGate : public execution::ObservationSink {
 public:
  // Asks for readings of a node's GPUs, these at least, and for word of its events. Never waits,
  // and asks nothing of the gate.
  using ReadNow =
      std::function<void(const std::string& node, const std::vector<std::string>& uuids)>;
  // Tells people that a GPU does not come free.
  using Alert = std::function<void(const std::string& text)>;

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
    std::string why;  // what the last reading still showed
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
  struct NodeReadings;
  using Questions = std::map<std::string, std::set<std::string>>;  // GPUs by node

  std::vector<AwaitedGpu> gpus_of(model::AttemptId attempt) const;
  bool hold_end(const execution::Ended& ended);
  bool hold_release(const execution::Cleaned& cleaned);
  void begin_asking(Held& held);
  static void add_questions(const Held& held, Questions& questions);
  void ask(const Questions& questions) const;
  void measure_base_lines(const NodeReadings& now);
  std::string what_is_left(model::AttemptId attempt, const std::string& uuid,
                           const NodeReadings& now) const;
  void pass_what_may();
  bool pass_what_may(Held& held);
  SteadyClock::time_point let_overdue_ends_pass(SteadyClock::time_point now);
  void run();

  execution::ObservationSink& sink_;
  const SnapshotNow snapshot_;
  const ReadNow read_now_;
  const Alert alert_;
  const std::chrono::milliseconds end_timeout_;
  const std::chrono::milliseconds events_timeout_;

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_, as all below
  SteadyClock::time_point asleep_until_ = SteadyClock::time_point::min();  // of the thread
  std::map<model::AttemptId, Held> held_;
  std::set<std::string, std::less<>> nodes_read_;  // whose probe's last report was a reading
  // The least memory seen in use without processes, by UUID.
  std::map<std::string, base::Bytes> base_line_;
  std::thread thread_;
};

}  // namespace gpu_platform::monitoring
