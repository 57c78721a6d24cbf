#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "hardware/readings.h"

namespace gpu_platform::node {

// Events of the driver that wait to be told. Equal ones in a row are one with a count, so that a
// storm costs little; of too many the oldest are dropped and counted. Thread: one owner.
class EventQueue {
 public:
  static constexpr std::size_t kMaxKept = 1024;

  void add(hardware::GpuEvent event);

  bool empty() const { return kept_.empty(); }
  // The oldest ones, this many at most. They stay until remove().
  std::vector<hardware::GpuEvent> oldest(std::size_t most) const;
  // How many were dropped before the oldest, since the last remove().
  std::uint64_t dropped() const { return dropped_; }
  // Forgets the oldest ones, which were told.
  void remove(std::size_t count);

 private:
  std::deque<hardware::GpuEvent> kept_;
  std::uint64_t dropped_ = 0;
};

}  // namespace gpu_platform::node
