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
#include "execution/engine.h"
#include "model/command.h"

namespace gpu_platform::controller {

struct LoopOptions {
  std::size_t max_waiting_commands = 16'384;  // past it a command is answered kUnavailable at once
  std::size_t max_inputs_per_step = 1'024;    // bounds how long one commit makes others wait
  // How long that which frees nothing waits for something to be committed with: that an attempt has
  // started, or has ended and is being cleared away.
  std::chrono::microseconds patience{2'000};
  // Where attempts come and go fast, beyond `burst` steps in a row those for observations come this
  // far apart, and each takes in all that was seen meanwhile. Commands never wait, nor does anybody
  // where fewer than so many attempts hold anything.
  std::chrono::microseconds pace{8'000};
  std::uint32_t burst = 16;
  std::size_t least_paced = 32;
};

// The one thread that owns the state. Other threads give it inputs and read published snapshots.
// Inputs that arrive while a batch is being synced make up the next batch: that is the group
// commit. Of observations it is made larger by waiting a little where that makes nobody wait.
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
  // Finishes the inputs it has and ends the thread. Later inputs are refused.
  void stop();

  // ---- from any thread
  void command(model::Command command, CommandDone done);
  void observe(
      execution::Observation observation) override;  // never refused: facts are not optional
  void change_policy(model::Policy policy, std::string by, model::Origin origin = {});
  // Waits until all that was handed in before is durable and published. Not on the loop thread, and
  // only while the loop runs.
  void wait_until_published();
  std::shared_ptr<const Snapshot> snapshot() const;

 private:
  // What an input in the inbox makes the loop do, by how soon.
  enum class Haste : std::uint8_t { kNone, kPaced, kNow };

  void published(const std::shared_ptr<const Snapshot>& snapshot,
                 std::span<const model::EventRecord> events,
                 std::span<const model::Job> ended) override;
  void run();
  using SteadyClock = std::chrono::steady_clock;

  bool wait_for_work();  // false: time to end
  void wait_for_haste(std::unique_lock<std::mutex>& lock, Haste haste, SteadyClock::time_point end);
  void note_paced_step();
  void keep_pace(std::unique_lock<std::mutex>& lock);
  void push(Input input, Haste haste);

  Controller& controller_;
  Clock& clock_;
  std::function<void(const base::Error&)> on_fatal_;
  LoopOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Input> inbox_;                   // guarded by mutex_
  Haste haste_ = Haste::kNone;                // the greatest in the inbox; guarded by mutex_
  Haste listens_for_ = Haste::kNone;          // the least that wakes the loop; guarded by mutex_
  bool stopping_ = false;                     // guarded by mutex_
  std::shared_ptr<const Snapshot> snapshot_;  // guarded by mutex_
  SteadyClock::time_point paced_until_;       // of the thread: when the steps taken are worked off
  std::thread thread_;
};

}  // namespace gpu_platform::controller
