#include "cli/topology_text.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/table.h"
#include "cli/text.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;

struct Group {
  std::vector<const Json*> nodes;  // never empty
  const Json& first() const { return *nodes.front(); }
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

// What makes two nodes alike: everything but names, addresses and the last bytes of memory.
std::string likeness(const Json& node) {
  Json key = Json::array();
  key.push_back(flag_at(node, "emulated"));
  for (const Json& numa : list_at(node, "numa_nodes")) {
    key.push_back({text_at(numa, "id"), text_at(numa, "socket"), text_at(numa, "cpus"),
                   readable_size(integer_at(numa, "memory_bytes").value_or(0))});
  }
  for (const Json& gpu : list_at(node, "gpus")) {
    key.push_back({text_at(gpu, "index"), text_at(gpu, "type"), text_at(gpu, "numa_node")});
  }
  key.push_back(list_at(node, "links"));
  return json_text(key);
}

std::vector<Group> groups_of(const Json& nodes) {
  std::vector<Group> groups;
  std::map<std::string, std::size_t> known;
  for (const Json& node : nodes) {
    const auto [at, is_new] = known.try_emplace(likeness(node), groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].nodes.push_back(&node);
  }
  return groups;
}

// "a-1 … a-16, b-3": names that count on are drawn together.
std::string names_of(const Group& group) {
  std::vector<std::string> names;
  for (const Json* node : group.nodes) names.push_back(text_at(*node, "node"));
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
  if (flag_at(group.first(), "emulated")) marks.emplace_back("emulated");
  std::string title = names_of(group);
  if (!marks.empty()) title += fmt::format(" ({})", fmt::join(marks, ", "));
  return harmless(title);
}

// The words between each pair, both ways; "?" where none is known.
std::map<std::pair<std::string, std::string>, std::string> links_of(const Json& node) {
  std::map<std::pair<std::string, std::string>, std::string> links;
  for (const Json& link : list_at(node, "links")) {
    const std::string a = text_at(link, "a");
    const std::string b = text_at(link, "b");
    links[{a, b}] = links[{b, a}] = text_at(link, "link");
  }
  return links;
}

std::string cpus_of(const Json& node, const std::string& numa_node) {
  for (const Json& numa : list_at(node, "numa_nodes")) {
    if (!numa_node.empty() && text_at(numa, "id") == numa_node) return text_at(numa, "cpus");
  }
  return {};
}

// One table of some of the matrix' columns; the last one also says where each GPU's CPUs are.
std::string matrix_part(const Json& node, std::size_t begin, std::size_t end, std::size_t width) {
  const Json& gpus = list_at(node, "gpus");
  const auto links = links_of(node);
  const bool is_last = end == gpus.size();
  std::vector<Column> columns = {{"GPU", Align::kRight}};
  for (std::size_t i = begin; i < end; ++i) columns.push_back({text_at(gpus[i], "index")});
  if (is_last) {
    columns.push_back({"CPU AFFINITY", Align::kLeft, 12});
    columns.push_back({"NUMA", Align::kRight});
  }
  Table table(std::move(columns));
  for (const Json& row : gpus) {
    const std::string index = text_at(row, "index");
    std::vector<std::string> cells = {index};
    for (std::size_t i = begin; i < end; ++i) {
      const std::string other = text_at(gpus[i], "index");
      const auto link = links.find({index, other});
      cells.push_back(index == other ? "X" : link == links.end() ? "?" : link->second);
    }
    if (is_last) {
      const std::string numa_node = text_at(row, "numa_node");
      cells.push_back(cpus_of(node, numa_node));
      cells.push_back(numa_node);
    }
    table.add(std::move(cells));
  }
  return table.render(width);
}

// Below each other where the terminal is too narrow for all columns.
std::string matrix_of(const Json& node, std::size_t width) {
  constexpr std::size_t kCell = 6;      // "NV18" and a gap
  constexpr std::size_t kBorders = 25;  // the columns before and behind
  const std::size_t count = list_at(node, "gpus").size();
  if (count == 0) return {};
  std::size_t at_once = count;
  if (width != 0)
    at_once = std::max<std::size_t>(4, (std::max(width, kBorders) - kBorders) / kCell);
  std::string text;
  for (std::size_t begin = 0; begin < count; begin += at_once) {
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

std::string numa_text(const Json& numa) {
  std::string text = "NUMA node " + text_at(numa, "id");
  if (const std::string cpus = text_at(numa, "cpus"); !cpus.empty()) text += "  CPUs " + cpus;
  if (const auto bytes = integer_at(numa, "memory_bytes")) text += "  " + readable_size(*bytes);
  return text;
}

// Addresses are shown where all of the group share them.
Branch gpu_branch(const Group& group, std::size_t i) {
  const Json& gpu = list_at(group.first(), "gpus")[i];
  const std::string address = text_at(gpu, "pci_address");
  const bool is_shared = std::ranges::all_of(group.nodes, [&](const Json* node) {
    return text_at(list_at(*node, "gpus")[i], "pci_address") == address;
  });
  std::string text = fmt::format("GPU {}  {}", text_at(gpu, "index"), text_at(gpu, "type"));
  if (is_shared && !address.empty()) text += "  " + address;
  return {std::move(text), {}};
}

// Returns the branches of GPUs on the NUMA node with that id; an empty id stands for GPUs on no
// known one.
std::vector<Branch> gpus_on(const Group& group, const std::string& numa_node) {
  std::vector<Branch> branches;
  const Json& gpus = list_at(group.first(), "gpus");
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    if (text_at(gpus[i], "numa_node") == numa_node) branches.push_back(gpu_branch(group, i));
  }
  return branches;
}

std::string tree_of(const Group& group, std::size_t width) {
  std::vector<Branch> roots;
  std::map<std::string, std::size_t> sockets;
  std::set<std::string> ids;
  for (const Json& numa : list_at(group.first(), "numa_nodes")) {
    const std::string socket = text_at(numa, "socket");
    const auto [at, is_new] = sockets.try_emplace(socket, roots.size());
    if (is_new) roots.push_back({socket.empty() ? "socket not known" : "socket " + socket, {}});
    const std::string id = text_at(numa, "id");
    ids.insert(id);
    roots[at->second].children.push_back({numa_text(numa), gpus_on(group, id)});
  }
  // GPUs of no NUMA node, or of one that was not described.
  Branch others{"NUMA node not known", gpus_on(group, {})};
  std::set<std::string> strange;
  for (const Json& gpu : list_at(group.first(), "gpus")) {
    const std::string id = text_at(gpu, "numa_node");
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
std::string legend_of(const Json& nodes) {
  std::set<std::string> used;
  for (const Json& node : nodes) {
    const auto links = links_of(node);
    for (const auto& [pair, word] : links) used.insert(word.starts_with("NV") ? "NV#" : word);
    const std::size_t count = list_at(node, "gpus").size();
    if (links.size() < count * (count - std::min<std::size_t>(count, 1))) used.insert("?");
  }
  std::string text;
  for (const LegendLine& line : kLegend) {
    if (!used.contains(std::string(line.word))) continue;
    text += fmt::format("  {:<6}{}\n", line.word, line.meaning);
  }
  return text.empty() ? text : "\nBetween two GPUs:\n" + text;
}

}  // namespace

std::string topology_page(const Json& topology, std::size_t width) {
  const Json nodes = in_node_order(list_at(topology, "nodes"), "/node");
  std::string page;
  for (const Group& group : groups_of(nodes)) {
    if (!page.empty()) page += "\n";
    page += title_of(group) + "\n";
    const std::string matrix = matrix_of(group.first(), width);
    if (!matrix.empty()) page += "\n" + matrix;
    const std::string tree = tree_of(group, width);
    if (!tree.empty()) page += "\n" + tree;
  }
  return page + legend_of(nodes);
}

}  // namespace gpu_platform::cli
