#include "model/gpu_metrics.h"

#include <fmt/format.h>

namespace gpu_platform::model {

std::vector<std::string> throttle_names(std::uint64_t bits) {
  struct Reason {
    std::uint64_t bit;
    std::string_view name;
  };
  constexpr Reason kReasons[] = {
      {kThrottleClockSetting, "CLOCK_SETTING"}, {kThrottlePowerCap, "POWER_CAP"},
      {kThrottleHardware, "HARDWARE"},          {kThrottleSyncBoost, "SYNC_BOOST"},
      {kThrottleHeatSoftware, "HEAT_SOFTWARE"}, {kThrottleHeatHardware, "HEAT_HARDWARE"},
      {kThrottlePowerBrake, "POWER_BRAKE"},     {kThrottleDisplayClock, "DISPLAY_CLOCK"}};
  std::vector<std::string> names;
  bits &= ~kThrottleIdle;
  for (const Reason& reason : kReasons) {
    if ((bits & reason.bit) != 0) names.emplace_back(reason.name);
    bits &= ~reason.bit;
  }
  if (bits != 0) names.push_back(fmt::format("{:#x}", bits));
  return names;
}

std::string_view to_string(RecoveryAction action) {
  switch (action) {
    case RecoveryAction::kNone:
      return "NONE";
    case RecoveryAction::kGpuReset:
      return "GPU_RESET";
    case RecoveryAction::kNodeReboot:
      return "NODE_REBOOT";
    case RecoveryAction::kDrainPeerToPeer:
      return "DRAIN_P2P";
    case RecoveryAction::kDrainAndReset:
      return "DRAIN_AND_RESET";
    case RecoveryAction::kRecoverImexDomain:
      return "RECOVER_IMEX_DOMAIN";
    case RecoveryAction::kBusReset:
      return "BUS_RESET";
    case RecoveryAction::kSystemReboot:
      return "SYSTEM_REBOOT";
    case RecoveryAction::kUnknown:
      break;
  }
  return "UNKNOWN";
}

}  // namespace gpu_platform::model
