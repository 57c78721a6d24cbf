#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "model/ids.h"

namespace gpu_platform::execution {

// What other threads read of an engine: what each attempt waits for, and whether all nodes were
// told. The engine's thread writes it, and any thread reads it.
class EngineStatus {
 public:
  // Takes over what has changed since the last call. `Attempts` is PodAttempts or WorkloadAttempts.
  template <class Attempts>
  void take_steps(Attempts& attempts) {
    const std::vector<model::AttemptId> changed = attempts.take_changed_steps();
    if (changed.empty()) return;
    const std::lock_guard lock(mutex_);
    for (const model::AttemptId attempt : changed) {
      std::string step = attempts.step_of(attempt);
      if (step.empty()) {
        steps_.erase(attempt);
      } else {
        steps_[attempt] = std::move(step);
      }
    }
  }
  // Returns what the attempt waits for, in words; empty: nothing, or it is not known.
  std::string step_of(model::AttemptId attempt) const {
    const std::lock_guard lock(mutex_);
    const auto found = steps_.find(attempt);
    return found == steps_.end() ? std::string() : found->second;
  }

  void nodes_told() {
    const std::lock_guard lock(mutex_);
    are_nodes_known_ = true;
    nodes_known_.notify_all();
  }
  // Waits for nodes_told(); false after the time.
  bool wait_for_nodes(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return nodes_known_.wait_for(lock, time, [this] { return are_nodes_known_; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable nodes_known_;
  bool are_nodes_known_ = false;
  std::map<model::AttemptId, std::string> steps_;
};

}  // namespace gpu_platform::execution
