#pragma once

#include <string>
#include <vector>

#include "api/core_access.h"
#include "execution/process/process_engine.h"

// How jobs on this host are kept apart, as the node part has said.

namespace gpu_platform::bin {

// Returns the isolation mechanisms for the API.
std::vector<api::IsolationGuard> isolation_of(const execution::NodePart& node);

// The lines of the log: one for what is held, and one for each cause for which something is not.
struct IsolationReport {
  std::string held;
  std::vector<std::string> advisory;
};
IsolationReport isolation_report(const execution::NodePart& node);

}  // namespace gpu_platform::bin
