#include "node/driver/readings_check.h"

#include <fmt/format.h>

namespace gpu_platform::node {

namespace {
// No board is so hot without work. Those that slow down do so from about here on, too.
constexpr std::int32_t kTooHot = 85;
}  // namespace

std::string objection_to_readings(const hardware::GpuReading& reading,
                                  const model::GpuSlowMetrics& slow) {
  if (reading.condition != hardware::GpuCondition::kAnswering) {
    return "it does not answer: " + reading.problem;
  }
  const auto action = reading.recovery_action.value_or(model::RecoveryAction::kNone);
  if (action != model::RecoveryAction::kNone) {
    return fmt::format("the driver asks for {}", model::to_string(action));
  }
  if (reading.ecc_uncorrected.value_or(0) != 0) {
    return fmt::format("{} uncorrected memory errors since the driver was loaded",
                       *reading.ecc_uncorrected);
  }
  if (slow.remap_failed.value_or(false)) return "a row of its memory could not be replaced";
  if (slow.remap_pending.value_or(false)) return "rows of its memory wait for a reset";
  if (slow.retirement_pending.value_or(false)) return "pages of its memory wait for a reset";
  if (reading.temperature_c.value_or(0) >= kTooHot) {
    return fmt::format("it is at {} degrees Celsius without work", *reading.temperature_c);
  }
  return {};
}

}  // namespace gpu_platform::node
