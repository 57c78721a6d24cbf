#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "execution/engine.h"

namespace gpu_platform::bin {

// Keeps observations until their receiver exists, and then passes them on. The engine needs a sink
// before the controller, and what receives them needs the controller. Any thread.
class LateSink : public execution::ObservationSink {
 public:
  // What has come so far is passed on first. `sink` lives until disconnect().
  void connect(execution::ObservationSink& sink) {
    const std::lock_guard lock(mutex_);
    sink_ = &sink;
    for (auto& observation : waiting_) sink.observe(std::move(observation));
    waiting_.clear();
  }
  // Observations that come later are dropped: the next daemon learns it from the engine's records.
  void disconnect() {
    const std::lock_guard lock(mutex_);
    sink_ = nullptr;
    closed_ = true;
  }
  void observe(execution::Observation observation) override {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    if (sink_ == nullptr) {
      waiting_.push_back(std::move(observation));
    } else {
      sink_->observe(std::move(observation));
    }
  }

 private:
  std::mutex mutex_;
  execution::ObservationSink* sink_ = nullptr;
  bool closed_ = false;
  std::vector<execution::Observation> waiting_;
};

}  // namespace gpu_platform::bin
