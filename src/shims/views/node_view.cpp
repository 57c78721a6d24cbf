#include "shims/views/node_view.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "cli/text.h"
#include "shims/text/columns.h"
#include "shims/text/host_list.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;
using cli::text_at;

constexpr std::string_view kNull = "(null)";

bool is_out_of_service(const Json& gpu) {
  const std::string state = text_at(gpu, "state");
  return state == "DRAINING" || state == "OFFLINE" || state == "DEGRADED" || state == "RESETTING";
}

std::int64_t mebibytes_at(const Json& node, std::string_view key) {
  return cli::integer_at(node, key).value_or(0) / base::kMiB.value();
}

// Counts the node's GPUs, and takes over why they take no work.
void put_gpus_of_types(const std::vector<const Json*>& gpus, NodeView& view) {
  std::size_t out = 0;
  for (const Json* gpu : gpus) {
    const std::string type = text_at(*gpu, "type");
    auto of_type = std::ranges::find(view.gpus, type, &NodeGpus::type);
    if (of_type == view.gpus.end()) of_type = view.gpus.insert(view.gpus.end(), {type, 0, {}});
    ++of_type->total;
    if (!cli::list_at(*gpu, "jobs").empty())
      of_type->used.push_back(cli::integer_at(*gpu, "index").value_or(0));
    if (text_at(*gpu, "state") == "CLEANING") view.is_completing = true;
    if (!is_out_of_service(*gpu)) continue;
    ++out;
    if (view.reason.empty()) view.reason = text_at(*gpu, "reason");
    if (view.reason_user.empty()) view.reason_user = text_at(*gpu, "changed_by");
    if (!view.reason_at) view.reason_at = cli::time_at(*gpu, "changed_at");
  }
  if (!gpus.empty() && out == gpus.size()) view.is_draining = true;
  if (out < gpus.size() && !view.is_draining && view.base_state != "down") {
    view.reason.clear();
    view.reason_user.clear();
    view.reason_at.reset();
  }
}

std::string base_state_of(const NodeView& view) {
  if (view.base_state == "down") return "down";
  std::int64_t total = 0;
  std::int64_t used = 0;
  for (const NodeGpus& gpus : view.gpus) {
    total += gpus.total;
    used += std::ssize(gpus.used);
  }
  if (used == 0 && view.cpus_used == 0) return "idle";
  const bool is_full = view.cpus_used >= view.cpus || (total > 0 && used == total);
  return is_full ? "allocated" : "mixed";
}

NodeView view_of(const Json& node, const std::vector<const Json*>& gpus) {
  NodeView view;
  view.name = text_at(node, "name");
  view.cpus = cli::integer_at(node, "cpus").value_or(0);
  view.cpus_used = cli::integer_at(node, "cpus_allocated").value_or(0);
  view.memory_mib = mebibytes_at(node, "memory_bytes");
  view.memory_used_mib = mebibytes_at(node, "memory_allocated_bytes");
  view.reason = text_at(node, "reason");
  const std::string state = text_at(node, "state");
  view.is_silent = state == "LOST";
  if (state == "LOST" || state == "OFFLINE") view.base_state = "down";
  view.is_draining = state == "DRAINING";
  put_gpus_of_types(gpus, view);
  view.base_state = base_state_of(view);
  return view;
}

void mark_reserved(const Json& reservations, std::vector<NodeView>& nodes) {
  for (const Json& reservation : cli::list_at(reservations, "reservations")) {
    if (!cli::flag_at(reservation, "active")) continue;
    for (const Json& reserved : cli::list_at(reservation, "nodes")) {
      const auto node = std::ranges::find(nodes, text_at(reserved, "node"), &NodeView::name);
      if (node == nodes.end() || !cli::flag_at(reserved, "whole_node")) continue;
      (cli::flag_at(reservation, "maintenance") ? node->is_maintained : node->is_reserved) = true;
    }
  }
}

void put_sockets(const Json& topology, std::vector<NodeView>& nodes) {
  for (const Json& entry : cli::list_at(topology, "nodes")) {
    const auto node = std::ranges::find(nodes, text_at(entry, "node"), &NodeView::name);
    if (node == nodes.end()) continue;
    std::set<std::int64_t> sockets;
    for (const Json& numa : cli::list_at(entry, "numa_nodes"))
      sockets.insert(cli::integer_at(numa, "socket").value_or(0));
    const auto count = std::ssize(sockets);
    if (count > 0 && node->cpus % count == 0) node->sockets = count;
  }
}

// A word of state and how it is shortened.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kWords = {{
    {"allocated", "alloc"},
    {"mixed", "mix"},
    {"idle", "idle"},
    {"down", "down"},
    {"draining", "drng"},
    {"drained", "drain"},
    {"maint", "maint"},
    {"reserved", "resv"},
}};

std::string_view word_of(const NodeView& node) {
  if (node.base_state == "down") return "down";
  if (node.is_draining) return node.base_state == "idle" ? "drained" : "draining";
  if (node.is_maintained) return "maint";
  if (node.is_reserved && node.base_state == "idle") return "reserved";
  return node.base_state;
}

std::string with_flag(const NodeView& node, std::string_view word) {
  return fmt::format("{}{}", word, node.is_silent ? "*" : "");
}

// Words of Slurm for states that no node here ever has.
constexpr std::string_view kNeverNodeStates[] = {
    "future",   "planned",   "powereddown", "poweringdown", "poweringup", "powerdown",
    "powerup",  "rebooting", "reboot",      "fail",         "failing",    "unknown",
    "perfctrs", "npc",       "cloud",       "blocked",      "inval",      "error"};

std::int64_t total_gpus(const NodeView& node) {
  std::int64_t total = 0;
  for (const NodeGpus& gpus : node.gpus) total += gpus.total;
  return total;
}

client::Called<Json> document_at(client::Client& client, const std::string& path) {
  const auto body = client.get(path);
  if (!body) return std::unexpected(body.error());
  auto document = cli::parse_object(*body);
  if (!document) return std::unexpected(client::bad_answer("the answer is not a JSON object"));
  return std::move(*document);
}

}  // namespace

client::Called<std::vector<NodeView>> list_nodes(client::Client& client) {
  const auto status = document_at(client, "/v1/status");
  if (!status) return std::unexpected(status.error());
  // What these would add is left out where the daemon does not say.
  const auto reservations = document_at(client, "/v1/reservations");
  const auto topology = document_at(client, "/v1/topology");
  return node_views(*status, reservations.value_or(Json::object()),
                    topology.value_or(Json::object()));
}

std::vector<NodeView> node_views(const Json& status, const Json& reservations,
                                 const Json& topology) {
  std::map<std::string, std::vector<const Json*>> gpus;
  for (const Json& gpu : cli::list_at(status, "gpus")) gpus[text_at(gpu, "node")].push_back(&gpu);
  std::vector<NodeView> nodes;
  const Json ordered = cli::in_node_order(cli::list_at(status, "nodes"), "/name");
  for (const Json& node : ordered) nodes.push_back(view_of(node, gpus[text_at(node, "name")]));
  mark_reserved(reservations, nodes);
  put_sockets(topology, nodes);
  return nodes;
}

std::string long_state(const NodeView& node) {
  return with_flag(node, word_of(node));
}

std::string compact_state(const NodeView& node) {
  const auto row = std::ranges::find(kWords, word_of(node), [](const auto& r) { return r.first; });
  return with_flag(node, row == kWords.end() ? word_of(node) : row->second);
}

std::string full_state(const NodeView& node) {
  std::string text = upper_case(node.base_state);
  if (node.is_draining) text += "+DRAIN";
  if (node.is_maintained) text += "+MAINTENANCE";
  if (node.is_reserved) text += "+RESERVED";
  if (node.is_completing) text += "+COMPLETING";
  if (node.is_silent) text += "+NOT_RESPONDING";
  return text;
}

std::optional<bool> is_in_node_state(const NodeView& node, std::string_view state) {
  const std::string wanted = plain_name(state);
  if (wanted == "all") return true;
  if (wanted == "norespond" || wanted == "notresponding") return node.is_silent;
  if (wanted == "drain") return node.is_draining;
  if (wanted == "completing" || wanted == "comp") return node.is_completing;
  if (wanted == "maint") return node.is_maintained;
  if (wanted == "resv" || wanted == "reserved") return node.is_reserved;
  const auto row = std::ranges::find_if(
      kWords, [&](const auto& r) { return wanted == r.first || wanted == r.second; });
  if (row != kWords.end()) return word_of(node) == row->first;
  const bool is_known = std::ranges::find(kNeverNodeStates, wanted) != std::end(kNeverNodeStates);
  return is_known ? std::optional(false) : std::nullopt;
}

int state_rank(const NodeView& node) {
  constexpr std::string_view kOrder[] = {"down", "idle", "allocated", "mixed"};
  const auto base = std::ranges::find(kOrder, node.base_state) - std::begin(kOrder);
  return static_cast<int>(base) + (node.is_draining ? 8 : 0) + (node.is_silent ? 16 : 0);
}

std::string gres_of(const NodeView& node) {
  std::string text;
  for (const NodeGpus& gpus : node.gpus)
    text += fmt::format("{}gpu:{}:{}", text.empty() ? "" : ",", gpus.type, gpus.total);
  return text.empty() ? std::string(kNull) : text;
}

std::string gres_used_of(const NodeView& node) {
  std::string text;
  for (const NodeGpus& gpus : node.gpus) {
    const std::string indices = gpus.used.empty() ? "N/A" : cli::ranges_of(gpus.used);
    text += fmt::format("{}gpu:{}:{}(IDX:{})", text.empty() ? "" : ",", gpus.type, gpus.used.size(),
                        indices);
  }
  return text.empty() ? std::string(kNull) : text;
}

std::string features_of(const NodeView& node) {
  std::vector<std::string> words;
  const auto add = [&](std::string word) {
    if (!word.empty() && std::ranges::find(words, word) == words.end())
      words.push_back(std::move(word));
  };
  for (const NodeGpus& gpus : node.gpus) {
    add("gpu");
    add(lower_case(gpus.type.substr(0, gpus.type.find('-'))));
    add(gpus.type);
  }
  return words.empty() ? std::string(kNull) : cli::joined(words, ",");
}

std::string trackable_of(const NodeView& node) {
  std::string text = fmt::format("cpu={},mem={},billing={}", node.cpus,
                                 slurm_memory(node.memory_mib * base::kMiB.value()), node.cpus);
  if (const auto gpus = total_gpus(node); gpus > 0) text += fmt::format(",gres/gpu={}", gpus);
  return text;
}

std::string trackable_used_of(const NodeView& node) {
  std::string text;
  if (node.cpus_used > 0) text += fmt::format("cpu={}", node.cpus_used);
  if (node.memory_used_mib > 0) {
    text += fmt::format("{}mem={}", text.empty() ? "" : ",",
                        slurm_memory(node.memory_used_mib * base::kMiB.value()));
  }
  std::int64_t used = 0;
  for (const NodeGpus& gpus : node.gpus) used += std::ssize(gpus.used);
  if (used > 0) text += fmt::format("{}gres/gpu={}", text.empty() ? "" : ",", used);
  return text;
}

std::string nodes_of_reservation(const Json& reservation) {
  std::vector<std::string> names;
  for (const Json& node : cli::list_at(reservation, "nodes"))
    names.push_back(text_at(node, "node"));
  return host_list(std::move(names));
}

bool is_in(const NodeView& node, const Partition& partition) {
  return partition.gpu_types.empty() ||
         std::ranges::any_of(partition.gpu_types, [&](const std::string& wanted) {
           return std::ranges::any_of(node.gpus, [&](const NodeGpus& gpus) {
             return plain_name(gpus.type).starts_with(plain_name(wanted));
           });
         });
}

}  // namespace gpu_platform::shims
