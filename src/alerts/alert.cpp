#include "alerts/alert.h"

namespace gpu_platform::alerts {

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::kInfo:
      return "INFO";
    case Severity::kWarning:
      return "WARNING";
    case Severity::kCritical:
      break;
  }
  return "CRITICAL";
}

std::string_view to_string(State state) {
  switch (state) {
    case State::kPending:
      return "PENDING";
    case State::kFiring:
      return "FIRING";
    case State::kResolved:
      break;
  }
  return "RESOLVED";
}

}  // namespace gpu_platform::alerts
