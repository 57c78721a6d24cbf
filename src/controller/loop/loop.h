#pragma once

#include <atomic>
#include <condition_variable>
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
};

// The one thread that owns the state. Everybody else hands it inputs and reads published snapshots.
// Inputs that arrive while a batch is being synced make up the next batch: that is the group
// commit.
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
  void published(const std::shared_ptr<const Snapshot>& snapshot,
                 std::span<const model::EventRecord> events,
                 std::span<const model::Job> ended) override;
  void run();
  bool wait_for_work();  // false: time to end
  void push(Input input);

  Controller& controller_;
  Clock& clock_;
  std::function<void(const base::Error&)> on_fatal_;
  LoopOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Input> inbox_;                   // guarded by mutex_
  bool stopping_ = false;                     // guarded by mutex_
  std::shared_ptr<const Snapshot> snapshot_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace gpu_platform::controller
