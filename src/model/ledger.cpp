#include "model/ledger.h"

#include <iterator>

namespace gpu_platform::model {

Millis millis_of(base::Instant at) {
  return at.unix_ns() / 1'000'000;
}

std::string_view to_string(NotBilled why) {
  constexpr std::string_view kNames[] = {"billed",   "never ran", "hardware",
                                         "platform", "preempted", "reclaimed"};
  static_assert(std::size(kNames) == kNotBilledReasons);
  return kNames[static_cast<std::size_t>(why)];
}

}  // namespace gpu_platform::model
