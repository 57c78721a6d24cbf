#include "bin/isolation_report.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::bin {

std::vector<api::IsolationGuard> isolation_of(const execution::NodePart& node) {
  std::vector<api::IsolationGuard> guards;
  for (const node::GuardState& state : node.guards) {
    guards.push_back({std::string(node::to_string(state.guard)), state.held, state.why});
  }
  return guards;
}

namespace {

void add_word(std::string& words, std::string_view word) {
  fmt::format_to(std::back_inserter(words), "{}{}", words.empty() ? "" : " ", word);
}

// The guards that are not held, by the reason, in the order of the first of each.
using Advisory = std::vector<std::pair<std::string, std::string>>;

Advisory advisory_of(const execution::NodePart& node) {
  Advisory advisory;
  for (const node::GuardState& state : node.guards) {
    if (state.held) continue;
    auto cause = std::ranges::find(advisory, state.why, &Advisory::value_type::first);
    if (cause == advisory.end()) {
      advisory.emplace_back(state.why, "");
      cause = advisory.end() - 1;
    }
    add_word(cause->second, node::to_string(state.guard));
  }
  return advisory;
}

}  // namespace

IsolationReport isolation_report(const execution::NodePart& node) {
  IsolationReport report;
  std::string held;
  std::size_t not_held = 0;
  for (const node::GuardState& state : node.guards) {
    if (state.held) add_word(held, node::to_string(state.guard));
    not_held += state.held ? 0 : 1;
  }
  report.held = fmt::format("isolation held=\"{}\" detail=\"{}\"", held, node.detail);
  if (not_held > 0 && !node.can_switch_user) {
    report.advisory.push_back(fmt::format(
        "not root: jobs are not isolated from each other ({} isolation mechanisms are advisory; "
        "'gpu-platform doctor' lists them)",
        not_held));
    return report;
  }
  for (const auto& [why, guards] : advisory_of(node)) {
    report.advisory.push_back(fmt::format("isolation advisory=\"{}\" why=\"{}\"", guards, why));
  }
  return report;
}

}  // namespace gpu_platform::bin
