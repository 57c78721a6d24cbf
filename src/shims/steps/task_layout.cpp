#include "shims/steps/task_layout.h"

#include <algorithm>

#include <fmt/format.h>

#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

Layout in_blocks(std::uint32_t tasks, std::uint32_t nodes) {
  Layout layout(nodes);
  std::uint32_t rank = 0;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    const std::uint32_t count = tasks / nodes + (node < tasks % nodes ? 1 : 0);
    for (std::uint32_t i = 0; i < count; ++i) layout[node].push_back(rank++);
  }
  return layout;
}

// `plane` tasks for one node, then for the next.
Layout in_turns(std::uint32_t tasks, std::uint32_t nodes, std::uint32_t plane) {
  Layout layout(nodes);
  for (std::uint32_t rank = 0; rank < tasks; ++rank) layout[rank / plane % nodes].push_back(rank);
  return layout;
}

}  // namespace

base::Result<Distribution> parse_distribution(std::string_view text) {
  std::string word = lower_case(text);
  word = word.substr(0, word.find_first_of(":,"));
  if (word == "block" || word == "*") return Distribution{};
  if (word == "cyclic") return Distribution{Distribution::Kind::kCyclic, 1};
  if (word.starts_with("plane=")) {
    TRY_ASSIGN(const std::uint32_t plane, parse_number(std::string_view(word).substr(6), 1));
    return Distribution{Distribution::Kind::kPlane, plane};
  }
  return base::invalid({},
                       fmt::format("'{}' is not supported: write block, cyclic or plane=N", text));
}

Layout layout_of(std::uint32_t tasks, std::uint32_t nodes, const Distribution& distribution) {
  if (distribution.kind == Distribution::Kind::kBlock) return in_blocks(tasks, nodes);
  // A plane that leaves a node without a task is too large.
  const std::uint32_t largest = std::max(1U, (tasks - 1) / std::max(1U, nodes - 1));
  return in_turns(tasks, nodes, std::min(distribution.plane, largest));
}

std::vector<std::uint32_t> counts_of(const Layout& layout) {
  std::vector<std::uint32_t> counts;
  for (const auto& ranks : layout) counts.push_back(static_cast<std::uint32_t>(ranks.size()));
  return counts;
}

std::string per_node_text(const std::vector<std::uint32_t>& counts) {
  std::string text;
  for (std::size_t i = 0; i < counts.size();) {
    std::size_t end = i;
    while (end < counts.size() && counts[end] == counts[i]) ++end;
    if (!text.empty()) text.push_back(',');
    text += fmt::format("{}", counts[i]);
    if (end - i > 1) text += fmt::format("(x{})", end - i);
    i = end;
  }
  return text;
}

}  // namespace gpu_platform::shims
