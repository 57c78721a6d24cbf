#include "monitoring/load_watch.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace gpu_platform::monitoring {

namespace {

constexpr std::int64_t kWeight = 12;  // of the past, in readings
constexpr std::int64_t kPercentStep = 5;
constexpr std::int64_t kMemoryStep = std::int64_t{256} << 20;
// What is told again, so that a load that trembles about a bound is told once, and one reading of a
// short burst not at all.
constexpr std::int64_t kPercentMove = 3 * kPercentStep;
constexpr std::int64_t kMemoryMove = 2 * kMemoryStep;

}  // namespace

void LoadWatch::take(const hardware::GpuReading& reading) {
  if (!reading.utilization_percent || !reading.memory_total || !reading.memory_used) return;
  const std::int64_t now = std::min<std::int64_t>(*reading.utilization_percent, 100) * 100;
  utilization_ = utilization_ ? *utilization_ + (now - *utilization_) / kWeight : now;
  const std::int64_t used =
      reading.memory_used->value() + reading.memory_reserved.value_or(base::Bytes()).value();
  memory_free_ = base::Bytes(std::max<std::int64_t>(0, reading.memory_total->value() - used));
}

model::GpuLoad LoadWatch::rounded() const {
  const std::int64_t percent = (*utilization_ + 99) / 100;
  const std::int64_t steps = (percent + kPercentStep - 1) / kPercentStep;
  return {static_cast<std::uint32_t>(std::min<std::int64_t>(steps * kPercentStep, 100)),
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
