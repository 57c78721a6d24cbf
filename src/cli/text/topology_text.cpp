#include "cli/text/topology_text.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/text/gpu_text.h"
#include "cli/text/message_text.h"
#include "cli/text/table.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;

struct Group {
  std::vector<const v1::NodeTopology*> nodes;  // never empty
  const v1::NodeTopology& first() const { return *nodes.front(); }
};

struct LegendLine {
  std::string_view word;
  std::string_view meaning;
};
constexpr LegendLine kLegend[] = {
    {"NV#", "this many NVLinks"},
    {"PIX", "one PCIe switch"},
    {"PXB", "several PCIe switches"},
    {"PHB", "a PCIe host bridge"},
    {"NODE", "host bridges of one NUMA node"},
    {"SYS", "between NUMA nodes or sockets"},
    {"?", "not known"},
};

std::string text_of(std::uint32_t number) {
  return fmt::format("{}", number);
}

std::string numa_of(const v1::TopologyGpu& gpu) {
  return if_known(gpu.has_numa_node(), gpu.numa_node());
}

std::string socket_of(const v1::NumaNode& numa) {
  return if_known(numa.has_socket(), numa.socket());
}

// What makes two nodes alike: everything but names, addresses and the last bytes of memory.
std::string likeness(const v1::NodeTopology& node) {
  std::string key = node.emulated() ? "emulated" : "";
  const auto add = [&](const std::string& part) { key += part + '\x1f'; };
  for (const v1::NumaNode& numa : node.numa_nodes()) {
    for (const std::string& part : {text_of(numa.id()), socket_of(numa), numa.cpus(),
                                    readable_size(as_signed(numa.memory_bytes()))}) {
      add(part);
    }
  }
  key += "\x1e";
  for (const v1::TopologyGpu& gpu : node.gpus()) {
    for (const std::string& part : {text_of(gpu.index()), gpu.type(), numa_of(gpu)}) add(part);
  }
  key += "\x1e";
  for (const v1::GpuLink& link : node.links()) {
    for (const std::string& part : {text_of(link.a()), text_of(link.b()), link.link(),
                                    if_known(link.has_nvlink_version(), link.nvlink_version())}) {
      add(part);
    }
  }
  return key;
}

using NodeList = google::protobuf::RepeatedPtrField<v1::NodeTopology>;

std::vector<Group> groups_of(const NodeList& nodes) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> known;
  for (const v1::NodeTopology& node : nodes) {
    const auto [at, is_new] = known.try_emplace(likeness(node), groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].nodes.push_back(&node);
  }
  return groups;
}

// "a-1 … a-16, b-3": names that count on are drawn together.
std::string names_of(const Group& group) {
  std::vector<std::string> names;
  for (const v1::NodeTopology* node : group.nodes) names.push_back(node->node());
  std::vector<std::string> runs;
  for (std::size_t begin = 0; begin < names.size();) {
    const auto [stem, number] = split_name(names[begin]);
    std::size_t end = begin + 1;
    while (number && end < names.size() &&
           split_name(names[end]) == std::pair(stem, std::optional(*number + (end - begin)))) {
      ++end;
    }
    if (end - begin < 3) end = begin + 1;
    runs.push_back(end - begin == 1 ? names[begin]
                                    : fmt::format("{} … {}", names[begin], names[end - 1]));
    begin = end;
  }
  return fmt::format("{}", fmt::join(runs, ", "));
}

std::string title_of(const Group& group) {
  std::vector<std::string> marks;
  if (group.nodes.size() > 1) marks.push_back(counted(group.nodes.size(), "node"));
  if (group.first().emulated()) marks.emplace_back("emulated");
  std::string title = names_of(group);
  if (!marks.empty()) title += fmt::format(" ({})", fmt::join(marks, ", "));
  return harmless(title);
}

// The words between each pair, both ways; "?" where none is known.
std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> links_of(
    const v1::NodeTopology& node) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> links;
  for (const v1::GpuLink& link : node.links()) {
    links[{link.a(), link.b()}] = links[{link.b(), link.a()}] = link.link();
  }
  return links;
}

std::string cpus_of(const v1::NodeTopology& node, const std::string& numa_node) {
  for (const v1::NumaNode& numa : node.numa_nodes()) {
    if (text_of(numa.id()) == numa_node) return numa.cpus();
  }
  return {};
}

// One table of some of the matrix' columns; the last one also says where each GPU's CPUs are.
std::string matrix_part(const v1::NodeTopology& node, int begin, int end, std::size_t width) {
  const auto links = links_of(node);
  const bool is_last = end == node.gpus_size();
  std::vector<Column> columns = {{"GPU", Align::kRight}};
  for (int i = begin; i < end; ++i) columns.push_back({text_of(node.gpus(i).index())});
  if (is_last) {
    columns.push_back({"CPU AFFINITY", Align::kLeft, 12});
    columns.push_back({"NUMA", Align::kRight});
  }
  Table table(std::move(columns));
  for (const v1::TopologyGpu& row : node.gpus()) {
    std::vector<std::string> cells = {text_of(row.index())};
    for (int i = begin; i < end; ++i) {
      const std::uint32_t other = node.gpus(i).index();
      const auto link = links.find({row.index(), other});
      cells.push_back(row.index() == other ? "X" : link == links.end() ? "?" : link->second);
    }
    if (is_last) {
      const std::string numa_node = numa_of(row);
      cells.push_back(cpus_of(node, numa_node));
      cells.push_back(numa_node);
    }
    table.add(std::move(cells));
  }
  return table.render({.width = width});
}

// Below each other where the terminal is too narrow for all columns.
std::string matrix_of(const v1::NodeTopology& node, std::size_t width) {
  constexpr std::size_t kCell = 6;      // "NV18" and a gap
  constexpr std::size_t kBorders = 25;  // the columns before and behind
  const int count = node.gpus_size();
  if (count == 0) return {};
  int at_once = count;
  if (width != 0) {
    at_once = std::max(4, static_cast<int>((std::max(width, kBorders) - kBorders) / kCell));
  }
  std::string text;
  for (int begin = 0; begin < count; begin += at_once) {
    if (begin > 0) text += "\n";
    text += matrix_part(node, begin, std::min(begin + at_once, count), width);
  }
  return text;
}

struct Branch {
  std::string text;
  std::vector<Branch> children;
};

void draw(const std::vector<Branch>& branches, const std::string& indent, std::size_t width,
          std::string& out) {
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const bool is_last = i + 1 == branches.size();
    const std::string line = indent + (is_last ? "└─ " : "├─ ") + harmless(branches[i].text);
    out += (width == 0 ? line : shortened(line, width)) + "\n";
    draw(branches[i].children, indent + (is_last ? "   " : "│  "), width, out);
  }
}

std::string numa_text(const v1::NumaNode& numa) {
  std::string text = fmt::format("NUMA node {}", numa.id());
  if (!numa.cpus().empty()) text += "  CPUs " + numa.cpus();
  if (numa.has_memory_bytes()) text += "  " + readable_size(as_signed(numa.memory_bytes()));
  return text;
}

// Addresses are shown where all of the group share them.
Branch gpu_branch(const Group& group, int i) {
  const v1::TopologyGpu& gpu = group.first().gpus(i);
  const std::string& address = gpu.pci_address();
  const bool is_shared = std::ranges::all_of(group.nodes, [&](const v1::NodeTopology* node) {
    return node->gpus(i).pci_address() == address;
  });
  std::string text = fmt::format("GPU {}  {}", gpu.index(), gpu.type());
  if (is_shared && !address.empty()) text += "  " + address;
  return {std::move(text), {}};
}

// Returns the branches of GPUs on the NUMA node with that id; an empty id stands for GPUs on no
// known one.
std::vector<Branch> gpus_on(const Group& group, const std::string& numa_node) {
  std::vector<Branch> branches;
  for (int i = 0; i < group.first().gpus_size(); ++i) {
    if (numa_of(group.first().gpus(i)) == numa_node) branches.push_back(gpu_branch(group, i));
  }
  return branches;
}

std::string tree_of(const Group& group, std::size_t width) {
  std::vector<Branch> roots;
  std::map<std::string, std::size_t> sockets;
  std::set<std::string> ids;
  for (const v1::NumaNode& numa : group.first().numa_nodes()) {
    const std::string socket = socket_of(numa);
    const auto [at, is_new] = sockets.try_emplace(socket, roots.size());
    if (is_new) roots.push_back({socket.empty() ? "socket not known" : "socket " + socket, {}});
    const std::string id = text_of(numa.id());
    ids.insert(id);
    roots[at->second].children.push_back({numa_text(numa), gpus_on(group, id)});
  }
  // GPUs of no NUMA node, or of one that was not described.
  Branch others{"NUMA node not known", gpus_on(group, {})};
  std::set<std::string> strange;
  for (const v1::TopologyGpu& gpu : group.first().gpus()) {
    const std::string id = numa_of(gpu);
    if (!id.empty() && !ids.contains(id)) strange.insert(id);
  }
  for (const std::string& id : strange) {
    roots.push_back({"NUMA node " + id, gpus_on(group, id)});
  }
  if (!others.children.empty()) roots.push_back(std::move(others));
  std::string text;
  draw(roots, {}, width, text);
  return text;
}

// The words that were used, explained.
std::string legend_of(const NodeList& nodes) {
  std::set<std::string> used;
  for (const v1::NodeTopology& node : nodes) {
    const auto links = links_of(node);
    for (const auto& [pair, word] : links) used.insert(word.starts_with("NV") ? "NV#" : word);
    const auto count = static_cast<std::size_t>(node.gpus_size());
    if (links.size() < count * (count - std::min<std::size_t>(count, 1))) used.insert("?");
  }
  std::string text;
  for (const LegendLine& line : kLegend) {
    if (!used.contains(std::string(line.word))) continue;
    text += fmt::format("  {:<6}{}\n", line.word, line.meaning);
  }
  return text.empty() ? text : "\nBetween two GPUs:\n" + text;
}

// The GPUs that jobs have parts of, as `status --all` has them.
ClusterGpus shared_gpus(const NodeList& nodes) {
  ClusterGpus shared;
  for (const v1::NodeTopology& node : nodes) {
    for (const v1::TopologyGpu& gpu : node.gpus()) {
      if (gpu.parts().empty()) continue;
      v1::Gpu& row = *shared.Add();
      row.set_node(node.node());
      row.set_index(gpu.index());
      row.set_free_share(gpu.free_share());
      *row.mutable_parts() = gpu.parts();
      for (const v1::GpuPart& part : gpu.parts()) row.add_jobs(part.job());
    }
  }
  return shared;
}

}  // namespace

bool has_parts(const v1::GetTopologyResponse& topology) {
  return std::ranges::any_of(topology.nodes(), [](const v1::NodeTopology& node) {
    return std::ranges::any_of(node.gpus(),
                               [](const v1::TopologyGpu& gpu) { return !gpu.parts().empty(); });
  });
}

std::string topology_page(v1::GetTopologyResponse topology, std::size_t width,
                          const JobLabels& labels) {
  NodeList& nodes = *topology.mutable_nodes();
  put_in_node_order(nodes, [](const v1::NodeTopology& node) { return node.node(); });
  std::string page;
  for (const Group& group : groups_of(nodes)) {
    if (!page.empty()) page += "\n";
    page += title_of(group) + "\n";
    const std::string matrix = matrix_of(group.first(), width);
    if (!matrix.empty()) page += "\n" + matrix;
    const std::string tree = tree_of(group, width);
    if (!tree.empty()) page += "\n" + tree;
  }
  page += legend_of(nodes);
  if (!has_parts(topology)) return page;
  const Table parts = parts_table(shared_gpus(nodes), labels);
  return page + "\nGPUs that jobs share:\n" + parts.render({.width = width});
}

}  // namespace gpu_platform::cli
