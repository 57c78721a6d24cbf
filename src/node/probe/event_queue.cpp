#include "node/probe/event_queue.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace gpu_platform::node {

void EventQueue::add(hardware::GpuEvent event) {
  if (!kept_.empty()) {
    hardware::GpuEvent& latest = kept_.back();
    const std::uint32_t count = std::exchange(event.count, latest.count);
    const bool is_equal = event == latest;
    event.count = count;
    if (is_equal && latest.count <= std::numeric_limits<std::uint32_t>::max() - count) {
      latest.count += count;
      return;
    }
  }
  if (kept_.size() == kMaxKept) {
    dropped_ += kept_.front().count;
    kept_.pop_front();
  }
  kept_.push_back(std::move(event));
}

std::vector<hardware::GpuEvent> EventQueue::oldest(std::size_t most) const {
  const std::size_t count = std::min(kept_.size(), most);
  return {kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(count)};
}

void EventQueue::remove(std::size_t count) {
  const std::size_t there = std::min(kept_.size(), count);
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(there));
  dropped_ = 0;
}

}  // namespace gpu_platform::node
