#include "bin/isolation_report.h"

#include <iterator>

#include <fmt/format.h>

namespace gpu_platform::bin {

std::vector<api::IsolationGuard> isolation_of(const execution::NodePart& node) {
  std::vector<api::IsolationGuard> guards;
  for (const node::GuardState& state : node.guards) {
    guards.push_back({std::string(node::to_string(state.guard)), state.held, state.why});
  }
  return guards;
}

IsolationReport isolation_report(const execution::NodePart& node) {
  IsolationReport report;
  std::string held;
  for (const node::GuardState& state : node.guards) {
    const std::string_view guard = node::to_string(state.guard);
    if (state.held) {
      fmt::format_to(std::back_inserter(held), "{}{}", held.empty() ? "" : " ", guard);
    } else {
      report.advisory.push_back(
          fmt::format("isolation advisory=\"{}\" why=\"{}\"", guard, state.why));
    }
  }
  report.held = fmt::format("isolation held=\"{}\" detail=\"{}\"", held, node.detail);
  return report;
}

}  // namespace gpu_platform::bin
