#include "shims/views/sinfo_fields.h"

#include <algorithm>

#include <fmt/format.h>

#include "shims/text/host_list.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {

namespace {

using GroupText = std::function<std::string(const NodeGroup&)>;

// "8", or "8+" where nodes differ.
GroupText least(std::int64_t (*value)(const NodeView&)) {
  return [value](const NodeGroup& group) -> std::string {
    if (group.nodes.empty()) return "0";
    const auto [low, high] =
        std::ranges::minmax(group.nodes, {}, [&](const NodeView* node) { return value(*node); });
    return fmt::format("{}{}", value(*low), value(*high) > value(*low) ? "+" : "");
  };
}

// Takes the text of the first node: the others of the line are like it.
GroupText first(std::string (*text)(const NodeView&), std::string none = "") {
  return [text, none](const NodeGroup& group) {
    return group.nodes.empty() ? none : text(*group.nodes.front());
  };
}

GroupText always(std::string text) {
  return [text = std::move(text)](const NodeGroup&) { return text; };
}

std::string names_of(const NodeGroup& group) {
  std::vector<std::string> names;
  for (const NodeView* node : group.nodes) names.push_back(node->name);
  return host_list(std::move(names));
}

std::string partition_of_group(const NodeGroup& group) {
  return group.partition->name + (group.partition->is_default ? "*" : "");
}

std::string short_limit(const std::optional<base::Duration>& limit, std::string_view none) {
  return limit ? short_elapsed(*limit) : std::string(none);
}

std::string cpus_by_use(const NodeGroup& group) {
  std::int64_t used = 0;
  std::int64_t other = 0;
  std::int64_t all = 0;
  for (const NodeView* node : group.nodes) {
    all += node->cpus;
    used += node->cpus_used;
    if (node->is_draining || node->base_state == "down") other += node->cpus - node->cpus_used;
  }
  return fmt::format("{}/{}/{}/{}", used, all - used - other, other, all);
}

std::string nodes_by_use(const NodeGroup& group) {
  const NodeUse use = use_of(group);
  return fmt::format("{}/{}/{}/{}", use.allocated, use.idle, use.other, group.nodes.size());
}

std::string job_size(const NodeGroup& group) {
  const auto& most = group.partition->max_nodes;
  if (!most) return "1-infinite";
  return *most == 1 ? "1" : fmt::format("1-{}", *most);
}

std::string reason_of_node(const NodeView& node) {
  return node.reason.empty() ? "none" : node.reason;
}

std::string reason_user(const NodeView& node) {
  return node.reason_user.empty() ? "Unknown" : node.reason_user;
}

std::string reason_user_long(const NodeView& node) {
  return node.reason_user.empty()
             ? "Unknown"
             : fmt::format("{}({})", node.reason_user, user_number(node.reason_user));
}

std::string reason_time(const NodeView& node) {
  return slurm_time(node.reason_at, "Unknown");
}

std::int64_t cores_of(const NodeView& node) {
  return node.cpus / std::max<std::int64_t>(1, node.sockets);
}

std::string sockets_cores_threads(const NodeGroup& group) {
  return fmt::format("{}:{}:1", least([](const NodeView& n) { return n.sockets; })(group),
                     least(cores_of)(group));
}

std::vector<NodeField> partition_fields() {
  return {
      {{'P', "Partition", "PARTITION", partition_of_group}},
      {{'R', "PartitionName", "PARTITION",
        [](const NodeGroup& group) { return group.partition->name; }}},
      {{'a', "Available", "AVAIL", always("up")}},
      {{'l', "Time", "TIMELIMIT",
        [](const NodeGroup& g) { return short_limit(g.partition->shown_max_time(), "infinite"); }}},
      {{'L', "DefaultTime", "DEFAULTTIME",
        [](const NodeGroup& g) { return short_limit(g.partition->default_time, "n/a"); }}},
      {{'s', "Size", "JOB_SIZE", job_size}},
      {{'r', "Root", "ROOT", always("no")}},
      {{'h', "OverSubscribe", "OVERSUBSCRIBE", always("NO")}},
      {{0, "Share", "OVERSUBSCRIBE", always("NO")}},
      {{'g', "Groups", "GROUPS", always("all")}},
      {{'I', "PriorityJobFactor", "PRIO_JOB_FACTOR", always("1")}},
      {{'p', "PriorityTier", "PRIO_TIER", always("1")}},
      {{0, "Priority", "PRIO_TIER", always("1")}},
      {{'M', "PreemptMode", "PREEMPT_MODE", always("REQUEUE")}},
      {{'S', "AllocNodes", "ALLOCNODES", always("all")}},
      {{'B', "MaxCPUsPerNode", "MAX_CPUS_PER_NODE", always("UNLIMITED")}},
      {{'V', "Cluster", "CLUSTER", always("N/A")}},
  };
}

std::vector<NodeField> node_fields() {
  return {
      {{'D', "Nodes", "NODES",
        [](const NodeGroup& group) { return fmt::format("{}", group.nodes.size()); }}},
      {{'t', "StateCompact", "STATE", first(compact_state, "n/a")}, true},
      {{'T', "StateLong", "STATE", first(long_state, "n/a")}, true},
      {{0, "State", "STATE", first(long_state, "n/a")}, true},
      {{0, "StateComplete", "STATECOMPLETE",
        first([](const NodeView& node) { return lower_case(full_state(node)); }, "n/a")},
       true},
      {{'N', "NodeList", "NODELIST", names_of}},
      {{'n', "NodeHost", "HOSTNAMES", names_of}, true},
      {{'o', "NodeAddr", "NODE_ADDR", names_of}, true},
      {{'c', "CPUs", "CPUS", least([](const NodeView& node) { return node.cpus; })}},
      {{'m', "Memory", "MEMORY", least([](const NodeView& node) { return node.memory_mib; })}},
      {{'e', "FreeMem", "FREE_MEM",
        least([](const NodeView& node) { return node.memory_mib - node.memory_used_mib; })}},
      {{0, "AllocMem", "ALLOCMEM",
        least([](const NodeView& node) { return node.memory_used_mib; })}},
      {{'C', "CPUsState", "CPUS(A/I/O/T)", cpus_by_use}},
      {{'F', "NodeAIOT", "NODES(A/I/O/T)", nodes_by_use}},
      {{'A', "NodeAI", "NODES(A/I)",
        [](const NodeGroup& group) {
          const NodeUse use = use_of(group);
          return fmt::format("{}/{}", use.allocated, use.idle);
        }}},
      {{'G', "Gres", "GRES", first(gres_of, "(null)")}, true},
      {{0, "GresUsed", "GRES_USED", first(gres_used_of, "(null)")}, true},
      {{'f', "Features", "AVAIL_FEATURES", first(features_of, "(null)")}, true},
      {{'b', "features_act", "ACTIVE_FEATURES", first(features_of, "(null)")}, true},
      {{'E', "Reason", "REASON", first(reason_of_node, "none")}, true},
      {{'H', "TimeStamp", "TIMESTAMP", first(reason_time, "Unknown")}, true},
      {{'u', "User", "USER", first(reason_user, "Unknown")}, true},
      {{'U', "UserLong", "USER", first(reason_user_long, "Unknown")}, true},
      {{'X', "Sockets", "SOCKETS", least([](const NodeView& node) { return node.sockets; })}},
      {{'Y', "Cores", "CORES", least(cores_of)}},
      {{'Z', "Threads", "THREADS", always("1")}},
      {{'z', "SocketCoreThread", "S:C:T", sockets_cores_threads}},
      {{'O', "CPUsLoad", "CPU_LOAD", always("N/A")}},
      {{'d', "Disk", "TMP_DISK", always("0")}},
      {{'w', "Weight", "WEIGHT", always("1")}},
      {{'v', "Version", "VERSION", always(GP_VERSION)}},
      {{0, "Port", "PORT", always("0")}},
      {{0, "Comment", "COMMENT", always("(null)")}},
      {{0, "Extra", "EXTRA", always("(null)")}},
  };
}

}  // namespace

NodeUse use_of(const NodeGroup& group) {
  NodeUse use;
  for (const NodeView* node : group.nodes) {
    const bool is_used = node->base_state == "mixed" || node->base_state == "allocated";
    if (is_used) {
      ++use.allocated;
    } else if (node->base_state == "idle" && !node->is_draining) {
      ++use.idle;
    } else {
      ++use.other;
    }
  }
  return use;
}

std::span<const NodeField> sinfo_fields() {
  static const std::vector<NodeField> kFields = [] {
    std::vector<NodeField> all = partition_fields();
    std::ranges::move(node_fields(), std::back_inserter(all));
    return all;
  }();
  return kFields;
}

}  // namespace gpu_platform::shims
