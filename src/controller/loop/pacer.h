#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace gpu_platform::controller {

// Spaces out steps that no client waits for. `burst` steps may follow one another at once; beyond
// that they come one `pace` apart. A pause of one pace gives one step of the burst back. It is told
// the time, so that it needs no clock. Thread: the owner's.
class Pacer {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Options {
    std::chrono::microseconds pace{8'000};
    std::uint32_t burst = 16;
  };

  explicit Pacer(const Options& options) : options_(options) {}

  // A paced step is taken now. No more is noted than one pace works off, so steps that were taken
  // without regard to next() do not hold later ones back.
  void note_step(Time now) {
    const Time latest = now + options_.pace * (options_.burst + 1);
    worked_off_at_ = std::min(std::max(worked_off_at_, now) + options_.pace, latest);
  }

  // When the next step may be taken. A time in the past means at once.
  Time next() const { return worked_off_at_ - options_.pace * options_.burst; }

 private:
  Options options_;
  Time worked_off_at_;  // when the pauses make up for all steps that were noted
};

}  // namespace gpu_platform::controller
