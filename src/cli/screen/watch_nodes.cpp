#include "cli/screen/watch_nodes.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "cli/text/message_text.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;

constexpr std::array<std::string_view, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

struct NodeNow {
  std::string name;
  std::string strip;
  std::size_t gpus = 0, used = 0, out = 0, idle = 0;
  std::size_t measured = 0;
  double percent = 0;  // of all measured ones together
  std::uint64_t memory = 0, memory_total = 0;
  std::size_t with_power = 0;
  double watts = 0;
};

std::string heat_of(const v1::Gpu& gpu, bool is_ascii) {
  if (!is_in_service(gpu)) return is_ascii ? "x" : "×";
  if (gpu.jobs().empty()) return is_ascii ? "." : "·";
  if (!gpu.has_utilization_percent()) return "?";
  const double share = std::clamp(gpu.utilization_percent() / 100, 0.0, 1.0);
  if (is_ascii) return fmt::format("{}", std::min(9, static_cast<int>(share * 10)));
  return std::string(kBars[std::min(kBars.size() - 1, static_cast<std::size_t>(share * 8))]);
}

void add_to_node(const v1::Gpu& gpu, const WatchView& view, bool is_ascii, NodeNow& node) {
  node.strip += heat_of(gpu, is_ascii);
  ++node.gpus;
  if (!gpu.jobs().empty()) ++node.used;
  if (!is_in_service(gpu)) ++node.out;
  if (!idle_text(gpu, view).empty()) ++node.idle;
  if (gpu.has_utilization_percent()) {
    ++node.measured;
    node.percent += gpu.utilization_percent();
  }
  if (gpu.has_memory_used_bytes()) {
    node.memory += gpu.memory_used_bytes();
    node.memory_total += gpu.memory_total_bytes();
  }
  if (gpu.has_power_watts()) {
    ++node.with_power;
    node.watts += gpu.power_watts();
  }
}

// In the order in which they come first.
std::vector<NodeNow> nodes_now(const ClusterGpus& gpus, const WatchView& view, bool is_ascii) {
  std::vector<NodeNow> nodes;
  std::map<std::string, std::size_t> places;
  for (const v1::Gpu& gpu : gpus) {
    const auto [place, is_new] = places.emplace(gpu.node(), nodes.size());
    if (is_new) nodes.push_back({.name = gpu.node()});
    add_to_node(gpu, view, is_ascii, nodes[place->second]);
  }
  return nodes;
}

std::string memory_text(const NodeNow& node) {
  if (node.memory_total == 0) return {};
  constexpr auto kGib = static_cast<double>(std::int64_t{1} << 30);
  return fmt::format("{:.0f}/{:.0f} GiB", static_cast<double>(node.memory) / kGib,
                     static_cast<double>(node.memory_total) / kGib);
}

// "1 out, 2 idle".
std::string note_of(const NodeNow& node) {
  std::vector<std::string> parts;
  if (node.out > 0) parts.push_back(fmt::format("{} out", node.out));
  if (node.idle > 0) parts.push_back(fmt::format("{} idle", node.idle));
  return joined(parts, ", ");
}

}  // namespace

WatchTable watch_nodes(const ClusterGpus& gpus, const WatchView& view, const WatchStyle& style) {
  Table table({{"NODE", Align::kLeft, 8},
               {"USED", Align::kRight},
               {"GPUS"},
               {"UTIL", Align::kRight},
               {"MEMORY", Align::kRight, std::nullopt, 1},
               {"POWER", Align::kRight, std::nullopt, 2},
               {"NOTE", Align::kLeft, 8}});
  std::vector<bool> noted;
  for (const NodeNow& node : nodes_now(gpus, view, style.is_ascii)) {
    const bool is_measured = node.measured > 0;
    table.add({node.name, fmt::format("{} of {}", node.used, node.gpus), node.strip,
               is_measured
                   ? fmt::format("{:.0f} %", node.percent / static_cast<double>(node.measured))
                   : std::string(),
               memory_text(node),
               node.with_power == 0 ? std::string() : fmt::format("{:.1f} kW", node.watts / 1000),
               note_of(node)});
    noted.push_back(node.out > 0 || node.idle > 0);
  }
  return watch_table(table, noted, style.width);
}

}  // namespace gpu_platform::cli
