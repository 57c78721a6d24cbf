#pragma once

#include <vector>

#include "telemetry/frame.h"

namespace gpu_platform::telemetry {

// Hands frames to several listeners, in the order in which they were added. add() before the first
// take(); the listeners outlive it.
class Fanout final : public FrameListener {
 public:
  void add(FrameListener& listener) { listeners_.push_back(&listener); }
  void take(const Frames& frames) override {
    for (FrameListener* const listener : listeners_) listener->take(frames);
  }

 private:
  std::vector<FrameListener*> listeners_;
};

}  // namespace gpu_platform::telemetry
