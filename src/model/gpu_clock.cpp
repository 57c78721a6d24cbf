#include "model/gpu_clock.h"

#include <iterator>

namespace gpu_platform::model {

std::string_view to_string(RestKind kind) {
  constexpr std::string_view kNames[] = {"idle",     "reserved", "held",      "others",
                                         "draining", "degraded", "resetting", "offline"};
  static_assert(std::size(kNames) == kRestKinds);
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace gpu_platform::model
