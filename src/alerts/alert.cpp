#include "alerts/alert.h"

#include "base/letters.h"

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

std::optional<Severity> parse_severity(std::string_view name) {
  const std::string upper = base::to_upper(name);
  for (const Severity severity : {Severity::kInfo, Severity::kWarning, Severity::kCritical}) {
    if (to_string(severity) == upper) return severity;
  }
  return std::nullopt;
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
