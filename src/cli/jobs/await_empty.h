#pragma once

#include <optional>
#include <string>

#include "base/units.h"
#include "cli/client_names.h"

namespace gpu_platform::cli {

// What is to become empty: exactly one of these is given.
struct DrainedPart {
  std::optional<std::string> gpu_id;
  std::optional<std::string> gpu;  // "NODE:INDEX"
  std::optional<std::string> node;
};

// Waits until no job holds a part of it, and says on standard error which jobs still do. A daemon
// that goes away meanwhile is waited for. Returns kOk, kTimedOut when `at_most` has passed, or the
// code of a failure that was reported.
int await_empty(Console& console, Client& client, const DrainedPart& part,
                std::optional<base::Duration> at_most);

}  // namespace gpu_platform::cli
