#include "model/gpu_part.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

namespace gpu_platform::model {

namespace {

constexpr std::string_view kModeNames[] = {"none", "time-slice", "mps"};
static_assert(std::size(kModeNames) == kShareModes);
constexpr std::string_view kRungNames[] = {"advisory",   "watchdog",     "mps-limit",
                                           "time-slice", "driver-limit", "hardware"};
static_assert(std::size(kRungNames) == kRungs);
constexpr std::string_view kIsolationNames[] = {"none", "memory", "hardware"};
static_assert(std::size(kIsolationNames) == kIsolations);
constexpr std::string_view kBetweenNames[] = {"never", "team", "all"};
static_assert(std::size(kBetweenNames) == kSharedBetween);

}  // namespace

std::string_view to_string(ShareMode mode) {
  return kModeNames[static_cast<std::size_t>(mode)];
}

std::string_view to_string(Rung rung) {
  return kRungNames[static_cast<std::size_t>(rung)];
}

std::string_view to_string(Isolation isolation) {
  return kIsolationNames[static_cast<std::size_t>(isolation)];
}

std::string_view to_string(SharedBetween between) {
  return kBetweenNames[static_cast<std::size_t>(between)];
}

std::string written(base::GpuShare share) {
  const std::int64_t thousandths = share.value() * 1000 / base::kWholeGpu.value();
  std::string text = fmt::format("{}.{:03}", thousandths / 1000, thousandths % 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

bool is_enough(const Wall& wall, Isolation isolation) {
  switch (isolation) {
    case Isolation::kNone:
      return true;
    case Isolation::kMemory:
      return wall.memory >= Rung::kDriverLimit;
    case Isolation::kHardware:
      return std::min(wall.memory, wall.compute) == Rung::kHardware;
  }
  return false;
}

}  // namespace gpu_platform::model
