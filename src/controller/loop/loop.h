#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"
#include "controller/controller.h"
#include "controller/loop/clock.h"
#include "controller/loop/meter.h"
#include "controller/loop/pacer.h"
#include "controller/publication.h"
#include "execution/engine.h"
#include "model/command.h"

namespace gpu_platform::controller {

struct LoopOptions {
  std::size_t max_waiting_commands = 16'384;  // past it a command is answered kUnavailable at once
  std::size_t max_inputs_per_step = 1'024;    // bounds how long one commit makes others wait
  // An observation that frees nothing waits this long for others to be committed with: an attempt
  // has started, or it has ended and is being cleared away.
  std::chrono::microseconds batch_delay{2'000};
  // Steps for observations are paced (Pacer) while at least so many attempts hold GPUs: each step
  // takes in everything that was seen meanwhile. Commands are never paced.
  std::chrono::microseconds pace = Pacer::Options().pace;
  std::uint32_t burst = Pacer::Options().burst;
  std::size_t min_paced_attempts = 32;
};

// The one thread that owns the state. Other threads give it inputs and read published snapshots.
// Inputs that arrive while a batch is being synced make up the next batch: that is the group
// commit. Observations that free nothing wait a little, which makes their batch larger.
class Loop : public execution::ObservationSink, private PublicationListener {
 public:
  // `on_fatal` is called on the loop thread when the journal fails or an invariant is broken: the
  // process must end, because what is durable and what is in memory may differ. The controller is
  // used by the loop alone from start() to stop(), and must outlive it. Listeners that expect
  // snapshot() to show what they are told are added to the controller after the loop was made.
  Loop(Controller& controller, Clock& clock, std::function<void(const base::Error&)> on_fatal,
       LoopOptions options = {});
  ~Loop() override;

  void start();
  // Finishes its inputs and ends the thread. Later inputs are refused.
  void stop();

  // ---- from any thread
  void command(model::Command command, CommandDone done);
  void observe(
      execution::Observation observation) override;  // never refused: facts are not optional
  void change_policy(model::Policy policy, std::string by, model::Origin origin = {});
  // Removes ended jobs from the archive. They may still be there when a step fails: ask again.
  void drop_from_history(std::vector<model::JobId> jobs);
  // Waits until all earlier inputs are durable and published. Not on the loop thread, and only
  // while the loop runs.
  void wait_until_published();
  std::shared_ptr<const Snapshot> snapshot() const;
  Statistics statistics() const { return meter_.read(); }

 private:
  // Says how soon an input in the inbox makes the loop take a step.
  enum class Haste : std::uint8_t { kNone, kPaced, kNow };

  void published(const std::shared_ptr<const Snapshot>& snapshot,
                 std::span<const model::EventRecord> events, const DepartedJobs& departed) override;
  void run();
  using SteadyClock = std::chrono::steady_clock;

  bool wait_for_work();  // false: the loop is to end
  void wait_for_haste(std::unique_lock<std::mutex>& lock, Haste haste, SteadyClock::time_point end);
  void keep_pace(std::unique_lock<std::mutex>& lock);
  void push(Input input, Haste haste);

  Controller& controller_;
  Clock& clock_;
  std::function<void(const base::Error&)> on_fatal_;
  LoopOptions options_;
  Meter meter_;
  Pacer pacer_;  // the loop thread's

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Input> inbox_;                   // guarded by mutex_
  Haste haste_ = Haste::kNone;                // the greatest in the inbox; guarded by mutex_
  Haste listens_for_ = Haste::kNone;          // the least that wakes the loop; guarded by mutex_
  bool stopping_ = false;                     // guarded by mutex_
  std::shared_ptr<const Snapshot> snapshot_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace gpu_platform::controller
