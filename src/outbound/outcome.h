#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"

namespace gpu_platform::outbound {

// What came of one try to deliver a message.
struct Outcome {
  enum class Kind : std::uint8_t {
    kSent,
    kFailed,   // worth another try
    kRefused,  // the other side will never take this message
    kStopped,  // ended before it was known
  };
  Kind kind = Kind::kSent;
  std::string problem;         // without secrets; empty: it went
  base::Duration retry_after;  // what the other side asks for; 0: nothing
};

}  // namespace gpu_platform::outbound
