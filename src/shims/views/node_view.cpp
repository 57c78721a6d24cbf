#include "shims/views/node_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "cli/text/text.h"
#include "client/answer.h"
#include "gpu_platform/v1/slurm.pb.h"
#include "shims/text/columns.h"
#include "shims/text/host_list.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_amounts.h"

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kNull = "(null)";

bool is_out_of_service(const v1::Gpu& gpu) {
  return gpu.state() == v1::GPU_STATE_DRAINING || gpu.state() == v1::GPU_STATE_OFFLINE ||
         gpu.state() == v1::GPU_STATE_DEGRADED || gpu.state() == v1::GPU_STATE_RESETTING;
}

std::int64_t mebibytes(std::uint64_t bytes) {
  return static_cast<std::int64_t>(bytes) / base::kMiB.value();
}

// Counts the node's GPUs, and takes over why they take no work.
void put_gpus_of_types(const std::vector<const v1::Gpu*>& gpus, NodeView& view) {
  std::size_t out = 0;
  for (const v1::Gpu* gpu : gpus) {
    const std::string type = gpu->type();
    auto of_type = std::ranges::find(view.gpus, type, &NodeGpus::type);
    if (of_type == view.gpus.end()) of_type = view.gpus.insert(view.gpus.end(), {type, 0, {}});
    ++of_type->total;
    for (const v1::GpuPart& part : gpu->parts()) of_type->shared += part.share();
    if (!gpu->jobs().empty() && gpu->parts().empty()) of_type->used.push_back(gpu->index());
    if (gpu->state() == v1::GPU_STATE_CLEANING) view.is_completing = true;
    if (!is_out_of_service(*gpu)) continue;
    ++out;
    if (view.reason.empty()) view.reason = gpu->reason();
    if (view.reason_user.empty()) view.reason_user = gpu->changed_by();
    if (!view.reason_at) view.reason_at = client::time_of(gpu->changed_at());
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

NodeView view_of(const v1::Node& node, const std::vector<const v1::Gpu*>& gpus) {
  NodeView view;
  view.name = node.name();
  view.cpus = node.cpus();
  view.cpus_used = node.cpus_allocated();
  view.memory_mib = mebibytes(node.memory_bytes());
  view.memory_used_mib = mebibytes(node.memory_allocated_bytes());
  view.reason = node.reason();
  view.is_silent = node.state() == v1::NODE_STATE_LOST;
  if (view.is_silent || node.state() == v1::NODE_STATE_OFFLINE) view.base_state = "down";
  view.is_draining = node.state() == v1::NODE_STATE_DRAINING;
  put_gpus_of_types(gpus, view);
  view.base_state = base_state_of(view);
  return view;
}

void mark_reserved(const v1::ListReservationsResponse& reservations, std::vector<NodeView>& nodes) {
  for (const v1::Reservation& reservation : reservations.reservations()) {
    if (!reservation.active()) continue;
    for (const v1::ReservedNode& reserved : reservation.nodes()) {
      const auto node = std::ranges::find(nodes, reserved.node(), &NodeView::name);
      if (node == nodes.end() || !reserved.whole_node()) continue;
      (reservation.maintenance() ? node->is_maintained : node->is_reserved) = true;
    }
  }
}

void put_sockets(const v1::GetTopologyResponse& topology, std::vector<NodeView>& nodes) {
  for (const v1::NodeTopology& entry : topology.nodes()) {
    const auto node = std::ranges::find(nodes, entry.node(), &NodeView::name);
    if (node == nodes.end()) continue;
    std::set<std::int64_t> sockets;
    for (const v1::NumaNode& numa : entry.numa_nodes()) sockets.insert(numa.socket());
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

// What parts hold, as the nearest number of shards.
std::int64_t shards_used(const NodeView& node, const NodeGpus& gpus) {
  const double shards = gpus.shared * static_cast<double>(node.shards_per_gpu);
  return static_cast<std::int64_t>(std::floor(shards + 0.5));
}

// "dgx-9" before "dgx-10".
std::vector<const v1::Node*> in_order_of_people(const v1::Status& status) {
  std::vector<std::pair<decltype(cli::split_name("")), const v1::Node*>> keyed;
  for (const v1::Node& node : status.nodes())
    keyed.emplace_back(cli::split_name(node.name()), &node);
  std::ranges::stable_sort(keyed, {}, [](const auto& pair) -> const auto& { return pair.first; });
  std::vector<const v1::Node*> nodes;
  for (const auto& [key, node] : keyed) nodes.push_back(node);
  return nodes;
}

}  // namespace

client::Called<std::vector<NodeView>> list_nodes(client::Client& client) {
  const auto status = client.ask<v1::Status>("/v1/status", "the answer");
  if (!status) return std::unexpected(status.error());
  // What these would add is left out where the daemon does not say.
  const auto reservations =
      client.ask<v1::ListReservationsResponse>("/v1/reservations", "the answer");
  const auto topology = client.ask<v1::GetTopologyResponse>("/v1/topology", "the answer");
  const auto names = client.ask<v1::SlurmNames>("/v1/slurm", "the answer");
  std::vector<NodeView> nodes =
      node_views(*status, reservations.value_or(v1::ListReservationsResponse()),
                 topology.value_or(v1::GetTopologyResponse()));
  const bool has_shards = names && names->can_share();
  for (NodeView& node : nodes) node.shards_per_gpu = has_shards ? names->shards_per_gpu() : 0;
  return nodes;
}

std::vector<NodeView> node_views(const v1::Status& status,
                                 const v1::ListReservationsResponse& reservations,
                                 const v1::GetTopologyResponse& topology) {
  std::map<std::string, std::vector<const v1::Gpu*>> gpus;
  for (const v1::Gpu& gpu : status.gpus()) gpus[gpu.node()].push_back(&gpu);
  std::vector<NodeView> nodes;
  for (const v1::Node* node : in_order_of_people(status))
    nodes.push_back(view_of(*node, gpus[node->name()]));
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
  for (const NodeGpus& gpus : node.gpus) {
    if (node.shards_per_gpu > 0) {
      text += fmt::format(",shard:{}:{}", gpus.type, gpus.total * node.shards_per_gpu);
    }
  }
  return text.empty() ? std::string(kNull) : text;
}

std::string gres_used_of(const NodeView& node) {
  std::string text;
  for (const NodeGpus& gpus : node.gpus) {
    const std::string indices = gpus.used.empty() ? "N/A" : cli::ranges_of(gpus.used);
    text += fmt::format("{}gpu:{}:{}(IDX:{})", text.empty() ? "" : ",", gpus.type, gpus.used.size(),
                        indices);
  }
  for (const NodeGpus& gpus : node.gpus) {
    if (node.shards_per_gpu > 0) {
      text += fmt::format(",shard:{}:{}", gpus.type, shards_used(node, gpus));
    }
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
  const std::int64_t gpus = total_gpus(node);
  if (gpus > 0) text += fmt::format(",gres/gpu={}", gpus);
  const std::int64_t shards = gpus * node.shards_per_gpu;
  if (shards > 0) text += fmt::format(",gres/shard={}", shards);
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
  std::int64_t shards = 0;
  for (const NodeGpus& gpus : node.gpus) shards += shards_used(node, gpus);
  if (shards > 0) text += fmt::format("{}gres/shard={}", text.empty() ? "" : ",", shards);
  return text;
}

std::string nodes_of_reservation(const v1::Reservation& reservation) {
  std::vector<std::string> names;
  for (const v1::ReservedNode& node : reservation.nodes()) names.push_back(node.node());
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

PartitionTres tres_of_partition(const Partition& partition, const BillingWeights& weights,
                                const std::vector<NodeView>& nodes) {
  PartitionTres tres;
  std::int64_t memory_mib = 0;
  std::int64_t gpus = 0;
  base::MicroUsd per_hour;
  std::vector<std::string> types;
  for (const NodeView& node : nodes) {
    if (!is_in(node, partition)) continue;
    tres.names.push_back(node.name);
    tres.cpus += node.cpus;
    memory_mib += node.memory_mib;
    for (const NodeGpus& of_type : node.gpus) {
      gpus += of_type.total;
      per_hour += base::MicroUsd(weight_of_type(weights, of_type.type).value() * of_type.total);
      types.push_back(of_type.type);
    }
  }
  constexpr std::int64_t kMicro = 1'000'000;
  const std::int64_t billing = weights.is_empty() ? tres.cpus : per_hour.value() / kMicro;
  tres.text = fmt::format("cpu={},mem={},node={},billing={}{}", tres.cpus,
                          slurm_memory(memory_mib * base::kMiB.value()), tres.nodes(), billing,
                          gpus > 0 ? fmt::format(",gres/gpu={}", gpus) : "");
  tres.weights = weights_text(weights, types);
  return tres;
}

}  // namespace gpu_platform::shims
