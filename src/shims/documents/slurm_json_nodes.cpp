#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "client/answer.h"
#include "shims/command_call.h"
#include "shims/documents/slurm_json.h"
#include "shims/documents/slurm_json_parts.h"
#include "shims/steps/step_variables.h"
#include "shims/text/host_list.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_amounts.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;

Json states_of_node(const NodeView& node) {
  Json states = Json::array({upper_case(node.base_state)});
  if (node.is_draining) states.push_back("DRAIN");
  if (node.is_maintained) states.push_back("MAINTENANCE");
  if (node.is_reserved) states.push_back("RESERVED");
  if (node.is_completing) states.push_back("COMPLETING");
  if (node.is_silent) states.push_back("NOT_RESPONDING");
  return states;
}

Json features_list(const NodeView& node) {
  return comma_separated(text_of_document(features_of(node)));
}

Json limit_in_minutes(const std::optional<base::Duration>& limit) {
  return limit ? set_number(base::whole_milliseconds(*limit) / 60'000) : infinite_number();
}

// The load of the processors and the times of its start are not known of a node.
Json whole_node(const DocumentFacts& facts, const NodeView& node) {
  Json partitions = Json::array();
  for (const Partition& partition : facts.site.partitions) {
    if (is_in(node, partition)) partitions.push_back(partition.name);
  }
  Json entry = {{"architecture", "x86_64"},
                {"burstbuffer_network_address", ""},
                {"boards", 1},
                {"boot_time", set_number(0)},
                {"cluster_name", ""},
                {"cores", node.cpus / std::max<std::int64_t>(1, node.sockets)},
                {"specialized_cores", 0},
                {"cpu_binding", 0},
                {"cpu_load", 0},
                {"free_mem", set_number(node.memory_mib - node.memory_used_mib)},
                {"cpus", node.cpus},
                {"effective_cpus", node.cpus},
                {"specialized_cpus", ""},
                {"energy",
                 {{"average_watts", 0},
                  {"base_consumed_energy", 0},
                  {"consumed_energy", 0},
                  {"current_watts", set_number(0)},
                  {"previous_consumed_energy", 0},
                  {"last_collected", 0}}},
                {"external_sensors", Json::object()},
                {"extra", ""},
                {"power", Json::object()},
                {"features", features_list(node)},
                {"active_features", features_list(node)}};
  const bool is_newer = facts.form >= DocumentForm::k41;
  if (is_newer) entry["gpu_spec"] = "";
  entry["gres"] = text_of_document(gres_of(node));
  entry["gres_drained"] = "N/A";
  entry["gres_used"] = text_of_document(gres_used_of(node));
  entry["instance_id"] = "";
  entry["instance_type"] = "";
  entry["last_busy"] = set_number(0);
  entry["mcs_label"] = "";
  entry["specialized_memory"] = 0;
  entry["name"] = node.name;
  entry["next_state_after_reboot"] = Json::array({"INVALID"});
  entry["address"] = node.name;
  entry["hostname"] = node.name;
  entry["state"] = states_of_node(node);
  entry["operating_system"] = "Linux";
  entry["owner"] = "";
  entry["partitions"] = partitions;
  entry["port"] = 0;
  entry["real_memory"] = node.memory_mib;
  if (is_newer) entry["res_cores_per_gpu"] = 0;
  entry["comment"] = "";
  entry["reason"] = node.reason;
  entry["reason_changed_at"] = set_number(seconds_of_document(node.reason_at));
  entry["reason_set_by_user"] = node.reason_user;
  entry["resume_after"] = set_number(0);
  entry["reservation"] = "";
  entry["alloc_memory"] = node.memory_used_mib;
  entry["alloc_cpus"] = node.cpus_used;
  entry["alloc_idle_cpus"] = node.cpus - node.cpus_used;
  entry["tres_used"] = trackable_used_of(node);
  entry["tres_weighted"] = static_cast<double>(node.cpus_used);
  entry["slurmd_start_time"] = set_number(0);
  entry["sockets"] = node.sockets;
  entry["threads"] = 1;
  entry["temporary_disk"] = 0;
  entry["weight"] = 1;
  entry["tres"] = trackable_of(node);
  entry["version"] = kSlurmVersion;
  return entry;
}

Json maximums_of(const Partition& partition) {
  return {{"cpus_per_node", infinite_number()},
          {"cpus_per_socket", infinite_number()},
          {"memory_per_cpu", 0},
          {"partition_memory_per_cpu", unset_number()},
          {"partition_memory_per_node", set_number(0)},
          {"nodes", partition.max_nodes ? set_number(*partition.max_nodes) : infinite_number()},
          {"shares", 1},
          {"oversubscribe", {{"jobs", 1}, {"flags", Json::array()}}},
          {"time", limit_in_minutes(partition.shown_max_time())},
          {"over_time_limit", unset_number()}};
}

Json partition_entry(const DocumentFacts& facts, const Partition& partition) {
  const PartitionTres tres = tres_of_partition(partition, facts.site.weights, facts.nodes);
  Json entry = {{"nodes",
                 {{"allowed_allocation", ""},
                  {"configured", host_list(tres.names)},
                  {"total", tres.names.size()}}},
                {"accounts", {{"allowed", ""}, {"deny", ""}}},
                {"groups", {{"allowed", ""}}},
                {"qos", {{"allowed", ""}, {"deny", ""}, {"assigned", ""}}},
                {"alternate", ""},
                {"tres", {{"billing_weights", tres.weights}, {"configured", tres.text}}},
                {"cluster", ""}};
  if (facts.form >= DocumentForm::k41) entry["select_type"] = Json::array();
  entry["cpus"] = {{"task_binding", 0}, {"total", tres.cpus}};
  entry["defaults"] = {
      {"memory_per_cpu", 0},
      {"partition_memory_per_cpu", unset_number()},
      {"partition_memory_per_node", set_number(0)},
      {"time", partition.default_time ? limit_in_minutes(partition.default_time) : unset_number()},
      {"job", ""}};
  entry["grace_time"] = 0;
  entry["maximums"] = maximums_of(partition);
  entry["minimums"] = {{"nodes", 0}};
  entry["name"] = partition.name;
  entry["node_sets"] = "";
  entry["priority"] = {{"job_factor", 1}, {"tier", 1}};
  entry["timeouts"] = {{"resume", unset_number()}, {"suspend", unset_number()}};
  entry["partition"] = {{"state", Json::array({"UP"})}};
  entry["suspend_time"] = unset_number();
  return entry;
}

Json least_and_most(const Json& value) {
  return {{"minimum", value}, {"maximum", value}};
}

// Nodes of which sinfo says the same share an entry.
using AlikeNodes = std::vector<const NodeView*>;

bool is_like(const NodeView& a, const NodeView& b) {
  return states_of_node(a) == states_of_node(b) && a.cpus == b.cpus && a.sockets == b.sockets &&
         a.memory_mib == b.memory_mib && gres_of(a) == gres_of(b) &&
         gres_used_of(a) == gres_used_of(b) && a.reason == b.reason && a.reason_at == b.reason_at;
}

std::vector<AlikeNodes> alike_nodes(const std::vector<NodeView>& nodes,
                                    const Partition& partition) {
  std::vector<AlikeNodes> groups;
  for (const NodeView& node : nodes) {
    if (!is_in(node, partition)) continue;
    const auto group = std::ranges::find_if(
        groups, [&](const AlikeNodes& each) { return is_like(*each.front(), node); });
    if (group == groups.end()) {
      groups.push_back({&node});
    } else {
      group->push_back(&node);
    }
  }
  return groups;
}

Json cpus_of_nodes(const AlikeNodes& nodes, bool is_away) {
  std::int64_t used = 0;
  for (const NodeView* node : nodes) used += node->cpus_used;
  const std::int64_t total = nodes.front()->cpus * std::ssize(nodes);
  const std::int64_t idle = is_away ? 0 : total - used;
  return {{"allocated", used},
          {"idle", idle},
          {"other", total - used - idle},
          {"total", total},
          {"minimum", nodes.front()->cpus},
          {"maximum", nodes.front()->cpus},
          {"load", least_and_most(0)},
          {"per_node", {{"max", infinite_number()}}}};
}

Json memory_of_nodes(const AlikeNodes& nodes) {
  std::int64_t used = 0;
  std::int64_t least = nodes.front()->memory_mib;
  std::int64_t most = 0;
  for (const NodeView* node : nodes) {
    used += node->memory_used_mib;
    least = std::min(least, node->memory_mib - node->memory_used_mib);
    most = std::max(most, node->memory_mib - node->memory_used_mib);
  }
  return {{"minimum", nodes.front()->memory_mib},
          {"maximum", nodes.front()->memory_mib},
          {"free", {{"minimum", set_number(least)}, {"maximum", set_number(most)}}},
          {"allocated", used}};
}

Json sinfo_entry(const DocumentFacts& facts, const AlikeNodes& nodes, const Partition& partition) {
  const NodeView& node = *nodes.front();
  const bool is_away = node.is_draining || node.base_state == "down";
  const bool is_used = node.base_state == "mixed" || node.base_state == "allocated";
  const std::int64_t count = std::ssize(nodes);
  Json names = Json::array();
  for (const NodeView* each : nodes) names.push_back(each->name);
  const std::string features = text_of_document(features_of(node));
  Json entry = {{"port", 0},
                {"node", {{"state", states_of_node(node)}}},
                {"nodes",
                 {{"allocated", is_used ? count : 0},
                  {"idle", !is_used && !is_away ? count : 0},
                  {"other", !is_used && is_away ? count : 0},
                  {"total", count},
                  {"hostnames", Json::array()},
                  {"addresses", Json::array()},
                  {"nodes", names}}},
                {"cpus", cpus_of_nodes(nodes, is_away)},
                {"sockets", least_and_most(node.sockets)},
                {"cores", least_and_most(node.cpus / std::max<std::int64_t>(1, node.sockets))},
                {"threads", least_and_most(1)},
                {"disk", least_and_most(0)},
                {"memory", memory_of_nodes(nodes)},
                {"weight", least_and_most(1)},
                {"features", {{"total", features}, {"active", features}}},
                {"gres",
                 {{"total", text_of_document(gres_of(node))},
                  {"used", text_of_document(gres_used_of(node))}}},
                {"cluster", ""},
                {"comment", ""},
                {"extra", ""},
                {"reason",
                 {{"description", node.reason},
                  {"time", seconds_of_document(node.reason_at)},
                  {"user", node.reason_user}}},
                {"reservation", ""}};
  if (facts.form >= DocumentForm::k42) entry["resource_spec"] = {{"cpus", ""}, {"memory", 0}};
  entry["partition"] = partition_entry(facts, partition);
  return entry;
}

Json reservation_entry(const DocumentFacts& facts, const v1::Reservation& reservation) {
  std::int64_t cores = 0;
  for (const v1::ReservedNode& part : reservation.nodes()) {
    const auto node = std::ranges::find(facts.nodes, part.node(), &NodeView::name);
    if (node != facts.nodes.end() && part.whole_node()) cores += node->cpus;
  }
  Json flags = Json::array();
  if (reservation.maintenance()) flags.push_back("MAINT");
  flags.push_back("SPEC_NODES");
  const auto time = [](const google::protobuf::Timestamp& at) {
    return set_number(seconds_of_document(client::time_of(at)));
  };
  return {{"accounts", fmt::format("{}", fmt::join(reservation.teams(), ","))},
          {"burst_buffer", ""},
          {"core_count", cores},
          {"core_specializations", Json::array()},
          {"end_time", time(reservation.end())},
          {"features", ""},
          {"flags", flags},
          {"groups", ""},
          {"licenses", ""},
          {"max_start_delay", 0},
          {"name", reservation.name()},
          {"node_count", reservation.nodes().size()},
          {"node_list", nodes_of_reservation(reservation)},
          {"partition", ""},
          {"purge_completed", {{"time", unset_number()}}},
          {"start_time", time(reservation.begin())},
          {"watts", Json::object()},
          {"tres", fmt::format("cpu={}", cores)},
          {"users", fmt::format("{}", fmt::join(reservation.users(), ","))}};
}

Json with_update(const DocumentFacts& facts, std::string_view name, Json list) {
  Json document;
  document[std::string(name)] = std::move(list);
  document["last_update"] = set_number(seconds_of_document(facts.now));
  return document;
}

}  // namespace

Json nodes_document(const DocumentFacts& facts, const std::vector<NodeView>& shown) {
  if (facts.form == DocumentForm::k38) return old_nodes_document(shown, facts.site);
  Json list = Json::array();
  for (const NodeView& node : shown) list.push_back(whole_node(facts, node));
  return with_update(facts, "nodes", std::move(list));
}

Json sinfo_document(const DocumentFacts& facts, const std::vector<NodeView>& shown,
                    const std::vector<Partition>& partitions) {
  if (facts.form == DocumentForm::k38) return old_nodes_document(shown, facts.site);
  Json document{{"sinfo", Json::array()}};
  for (const Partition& partition : partitions) {
    for (const AlikeNodes& nodes : alike_nodes(shown, partition))
      document["sinfo"].push_back(sinfo_entry(facts, nodes, partition));
  }
  return document;
}

Json partitions_document(const DocumentFacts& facts, const std::vector<Partition>& shown) {
  Json list = Json::array();
  for (const Partition& partition : shown) list.push_back(partition_entry(facts, partition));
  return with_update(facts, "partitions", std::move(list));
}

Json reservations_document(const DocumentFacts& facts, std::span<const v1::Reservation> shown) {
  Json list = Json::array();
  for (const v1::Reservation& reservation : shown)
    list.push_back(reservation_entry(facts, reservation));
  return with_update(facts, "reservations", std::move(list));
}

}  // namespace gpu_platform::shims
