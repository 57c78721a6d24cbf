#pragma once

#include <string>
#include <vector>

#include "api/core_access.h"
#include "execution/process/process_engine.h"

// How jobs on this host are kept apart, as the node part has said.

namespace gpu_platform::bin {

// For the API.
std::vector<api::IsolationGuard> isolation_of(const execution::NodePart& node);

// For the log: one line for what is held, and one for each cause for which something is not.
struct IsolationReport {
  std::string held;
  std::vector<std::string> advisory;
};
IsolationReport isolation_report(const execution::NodePart& node);

}  // namespace gpu_platform::bin
