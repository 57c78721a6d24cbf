#pragma once

#include <algorithm>
#include <chrono>

namespace gpu_platform::listener {

// Whether a client costs more than it asks for: frames that bring no call forward (pings, settings,
// resets, empty pieces) are paid from an account that fills with time and with what the client gets
// sent. No input or output of its own.
class FloodMeter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr double kMax = 1'000;
  static constexpr double kPerSecond = 100;

  explicit FloodMeter(Clock::time_point now) : at_(now) {}

  void earn(double points) { points_ = std::min(kMax, points_ + points); }
  // False: the account is empty.
  bool spend(double points, Clock::time_point now) {
    earn(kPerSecond * std::chrono::duration<double>(now - at_).count());
    at_ = now;
    points_ -= points;
    return points_ >= 0;
  }

 private:
  double points_ = kMax;
  Clock::time_point at_;
};

}  // namespace gpu_platform::listener
