#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/units.h"
#include "controller/publication.h"
#include "model/ids.h"
#include "telemetry/frame.h"
#include "telemetry/history.h"
#include "telemetry/use_recorder.h"
#include "telemetry/use_source.h"

namespace gpu_platform::bin {

// Keeps a summary of what each running attempt does on its GPUs, and stores it as a note
// "use/JOB.ATTEMPT": each minute while it runs, and when it has ended. A daemon that is
// started again goes on from the note. A summary that is stored for good has percentiles of the
// first four levels alone.
//
// The energy that is read at the end of an attempt may come after that end, and a moment after the
// release, which the same reading allows. It is waited for until the next reading of the GPU, and
// not once another attempt has begun there.
//
// Safe from any thread. take() and published() hold a short lock and wait for nothing else.
class UseKeeper final : public telemetry::FrameListener,
                        public controller::PublicationListener,
                        public telemetry::UseSource {
 public:
  // `notes` outlives this; null: none are kept, and what ended is forgotten at once. `interval`: of
  // readings, of jobs that are not monitored; those of a cluster are read every 15 s at most.
  UseKeeper(telemetry::Notes* notes, base::Duration interval);
  ~UseKeeper() override;
  UseKeeper(const UseKeeper&) = delete;
  UseKeeper& operator=(const UseKeeper&) = delete;

  // Takes up the attempts that run already. Before the first published().
  void follow(const controller::Snapshot& snapshot);
  // From now on what has changed is stored each minute.
  void start();
  // Stores what has changed since it was stored last.
  void save();
  // The jobs have left the history.
  void forget(std::span<const model::JobId> jobs);

  void take(const telemetry::Frames& frames) override;
  void published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                 std::span<const model::EventRecord> events,
                 const controller::DepartedJobs& departed) override;
  std::optional<telemetry::UseSummary> get(model::AttemptId attempt) const override;
  std::optional<telemetry::UseBrief> brief(model::AttemptId attempt) const override;

 private:
  // One that runs, or has ended and may still hear of its energy.
  struct Running {
    telemetry::UseRecorder recorder;
    bool has_changed = false;  // since it was stored
    bool is_released = false;
  };

  // The summary of an attempt of which nothing was recorded yet.
  telemetry::UseSummary begun(const controller::Snapshot& snapshot, const model::Job& job,
                              const model::Attempt& attempt) const;
  base::Duration interval_of(const controller::Snapshot& snapshot, const model::Job& job,
                             const model::Attempt& attempt) const;
  void begin(model::AttemptId attempt, telemetry::UseSummary begun);
  void end(model::AttemptId attempt, base::Instant at);
  void release(model::AttemptId attempt);
  // With mutex_. Ends the recording of those among them that have given back their GPUs.
  void drop_released(const std::vector<model::AttemptId>& attempts);
  void drop(model::AttemptId attempt);  // with mutex_
  // With mutex_. Nothing where nothing was recorded.
  void store(model::AttemptId attempt, Running& running);
  void work();
  // What make() makes of the summary; nothing where there is none. A running one is not copied.
  template <class Make>
  auto made_of(model::AttemptId attempt, const Make& make) const
      -> std::optional<decltype(make(std::declval<const telemetry::UseSummary&>()))>;

  telemetry::Notes* const notes_;
  const base::Duration interval_;
  mutable std::mutex mutex_;
  std::map<model::AttemptId, Running> running_;
  std::unordered_map<std::string, std::vector<model::AttemptId>> by_gpu_;  // of these, by UUID
  std::condition_variable wake_;
  bool is_stopping_ = false;
  std::thread thread_;  // none before start()
};

}  // namespace gpu_platform::bin
