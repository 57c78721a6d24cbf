#include "node/driver/driver.h"

#include <fmt/format.h>

#include "node/driver/gpu_check.h"
#include "node/driver/gpu_reset.h"
#include "node/driver/power_limit.h"

namespace gpu_platform::node {

namespace {

DriverAnswer limit_power(const DriverOrder& order) {
  constexpr std::uint32_t kMaxWatts = 10'000;  // of one GPU; more would not fit in milliwatts
  DriverAnswer answer;
  for (const std::string& uuid : order.gpus) {
    answer.gpus.push_back({uuid, order.watts > kMaxWatts
                                     ? fmt::format("{} W is no power limit", order.watts)
                                     : set_power_limit(order.library, uuid, order.watts * 1000)});
  }
  answer.detail = fmt::format("power limit {} W", order.watts);
  return answer;
}

}  // namespace

DriverAnswer run_driver(const DriverOrder& order) {
  switch (order.verb) {
    case DriverVerb::kReset:
      return reset_gpus(order);
    case DriverVerb::kQuickCheck:
    case DriverVerb::kDeepCheck:
      return check_gpus(order);
    case DriverVerb::kPower:
      break;
  }
  return limit_power(order);
}

}  // namespace gpu_platform::node
