#include "monitoring/load_watch.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace gpu_platform::monitoring {

namespace {

constexpr std::chrono::duration<double> kMeanOver = std::chrono::minutes(1);
constexpr std::int64_t kPercentStep = 5;
constexpr std::int64_t kMemoryStep = std::int64_t{256} << 20;
// What is told again, so that a load that trembles about a bound is told once, and one reading of a
// short burst not at all.
constexpr std::int64_t kPercentMove = 3 * kPercentStep;
constexpr std::int64_t kMemoryMove = 2 * kMemoryStep;

base::Bytes free_beside(const hardware::GpuReading& reading, base::Bytes used) {
  const base::Bytes rest = *reading.memory_total - std::min(used, *reading.memory_total);
  return rest - std::min(rest, reading.memory_reserved.value_or(base::Bytes()));
}

}  // namespace

// A reading counts for the time since the one before, however often the GPU is read. So after a job
// has held the GPU for long, the first one counts alone.
void LoadWatch::take(const hardware::GpuReading& reading,
                     std::chrono::steady_clock::time_point at) {
  if (!reading.utilization_percent || !reading.memory_total || !reading.memory_used) return;
  const auto now = static_cast<double>(std::min(*reading.utilization_percent, 100U));
  const double weight = std::clamp((at - taken_at_) / kMeanOver, 0.0, 1.0);
  utilization_ = utilization_ ? std::lerp(*utilization_, now, weight) : now;
  taken_at_ = at;
  memory_free_ = free_beside(reading, *reading.memory_used);
}

void LoadWatch::take_held(const hardware::GpuReading& reading,
                          std::optional<base::Bytes> of_others) {
  if (!utilization_ || !of_others || !reading.memory_total) return;
  memory_free_ = free_beside(reading, *of_others);
}

model::GpuLoad LoadWatch::rounded() const {
  const std::int64_t percent = std::lround(*utilization_);
  const std::int64_t steps = (percent + kPercentStep - 1) / kPercentStep;
  return {static_cast<std::uint32_t>(steps * kPercentStep),
          base::Bytes(memory_free_->value() / kMemoryStep * kMemoryStep)};
}

bool LoadWatch::has_moved(bool is_wanted) const {
  if (!is_wanted || !utilization_) return !is_wanted && told_.has_value();
  if (!told_) return true;
  const model::GpuLoad now = rounded();
  const auto percent =
      std::int64_t{now.utilization_percent} - std::int64_t{told_->utilization_percent};
  return std::abs(percent) >= kPercentMove ||
         std::abs((now.memory_free - told_->memory_free).value()) >= kMemoryMove;
}

std::optional<model::GpuLoad> LoadWatch::tell() {
  told_.reset();
  if (utilization_) told_ = rounded();
  return told_;
}

std::optional<model::GpuLoad> LoadWatch::forget() {
  told_.reset();
  return std::nullopt;
}

}  // namespace gpu_platform::monitoring
