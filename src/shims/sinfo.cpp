#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/json_view.h"
#include "cli/text.h"
#include "shims/call.h"
#include "shims/columns.h"
#include "shims/job_view.h"
#include "shims/step_variables.h"
#include "shims/values.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;
using cli::text_at;

constexpr std::string_view kSynopsis = "[options]";
constexpr std::string_view kUsual = "%9P %.5a %.10l %.6D %.6t %N";
constexpr std::string_view kLong = "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N";
constexpr std::string_view kNodes = "%N %.6D %.9P %6t";
constexpr std::string_view kNodesLong = "%N %.6D %.9P %.11T %.4c %.8z %.8m %.8d %.6w %.8f %20E";
constexpr std::string_view kSummary = "%9P %.5a %.10l %.16F %N";

constexpr Option kOptions[] = {
    {"format", 'o', Take::kValue, Rule::kHonoured, "", "SINFO_FORMAT"},
    {"Format", 'O', Take::kValue, Rule::kHonoured, "", ""},
    {"noheader", 'h', Take::kNothing, Rule::kHonoured, "", ""},
    {"Node", 'N', Take::kNothing, Rule::kHonoured, "", ""},
    {"long", 'l', Take::kNothing, Rule::kHonoured, "", ""},
    {"summarize", 's', Take::kNothing, Rule::kHonoured, "", ""},
    {"partition", 'p', Take::kValue, Rule::kHonoured, "", "SINFO_PARTITION"},
    {"nodes", 'n', Take::kValue, Rule::kHonoured, "", ""},
    {"states", 't', Take::kValue, Rule::kHonoured, "", ""},
    {"help", 0, Take::kNothing, Rule::kHonoured, "", ""},
    {"version", 'V', Take::kNothing, Rule::kHonoured, "", ""},
    {"all", 'a', Take::kNothing, Rule::kAccepted, "", ""},
    {"exact", 'e', Take::kNothing, Rule::kAccepted, "", ""},
    {"verbose", 'v', Take::kNothing, Rule::kAccepted, "", ""},
    {"sort", 'S', Take::kValue, Rule::kIgnored, "nodes come by name", ""},
    {"clusters", 'M', Take::kValue, Rule::kIgnored, "there is one cluster", ""},
    {"list-reasons", 'R', Take::kNothing, Rule::kRefused, "gpu-platform status has the reasons",
     ""},
    {"iterate", 'i', Take::kValue, Rule::kRefused, "use watch sinfo, or gpu-platform watch", ""},
    {"json", 0, Take::kMayHaveValue, Rule::kRefused,
     "'gpu-platform status --json' has the platform's", ""},
};

// Nodes in one line.
struct Group {
  std::vector<const Json*> nodes;
  const Json& status;
};

std::int64_t number(const Json& node, std::string_view key) {
  return cli::integer_at(node, key).value_or(0);
}

std::string_view state_of_node(const Json& node) {
  const std::string state = text_at(node, "state");
  const std::int64_t used = number(node, "cpus_allocated");
  if (state == "LOST" || state == "OFFLINE") return "down";
  if (state == "DRAINING") return used > 0 ? "draining" : "drained";
  if (used == 0) return "idle";
  const bool is_full = number(node, "total_gpus") > 0 ? number(node, "available_gpus") == 0
                                                      : used >= number(node, "cpus");
  return is_full ? "allocated" : "mixed";
}

std::string_view short_state(std::string_view state) {
  constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"allocated", "alloc"}, {"mixed", "mix"}, {"draining", "drng"}, {"drained", "drain"}};
  const auto row =
      std::ranges::find(kShort, state, &std::pair<std::string_view, std::string_view>::first);
  return row == std::end(kShort) ? state : row->second;
}

std::string names_of(const Group& group) {
  std::vector<std::string> names;
  for (const Json* node : group.nodes) names.push_back(text_at(*node, "name"));
  return fmt::format("{}", fmt::join(names, ","));
}

// "8", or "8+" where nodes differ.
std::string least(const Group& group, std::int64_t (*value)(const Json&)) {
  if (group.nodes.empty()) return "0";
  std::int64_t lowest = INT64_MAX;
  std::int64_t highest = 0;
  for (const Json* node : group.nodes) {
    lowest = std::min(lowest, value(*node));
    highest = std::max(highest, value(*node));
  }
  return fmt::format("{}{}", lowest, highest > lowest ? "+" : "");
}

std::int64_t sum(const Group& group, std::string_view key) {
  std::int64_t total = 0;
  for (const Json* node : group.nodes) total += number(*node, key);
  return total;
}

// "gpu:H100-80GB:8": of the first node, for which the others of its line stand.
std::string gres_of(const Group& group) {
  if (group.nodes.empty()) return "(null)";
  const std::string name = text_at(*group.nodes.front(), "name");
  std::map<std::string, int> types;
  for (const Json& gpu : cli::list_at(group.status, "gpus")) {
    if (text_at(gpu, "node") == name) ++types[text_at(gpu, "type")];
  }
  std::string text;
  for (const auto& [type, count] : types)
    text += fmt::format("{}gpu:{}:{}", text.empty() ? "" : ",", type, count);
  return text.empty() ? "(null)" : text;
}

// Allocated, idle, other, total: of nodes.
std::string nodes_by_use(const Group& group) {
  int used = 0;
  int idle = 0;
  for (const Json* node : group.nodes) {
    const std::string_view state = state_of_node(*node);
    used += state == "allocated" || state == "mixed" ? 1 : 0;
    idle += state == "idle" ? 1 : 0;
  }
  const int all = static_cast<int>(group.nodes.size());
  return fmt::format("{}/{}/{}/{}", used, idle, all - used - idle, all);
}

std::string cpus_by_use(const Group& group) {
  const std::int64_t used = sum(group, "cpus_allocated");
  const std::int64_t all = sum(group, "cpus");
  return fmt::format("{}/{}/0/{}", used, all - used, all);
}

std::string state_text(const Group& group) {
  return group.nodes.empty() ? "n/a" : std::string(state_of_node(*group.nodes.front()));
}

std::string reason_text(const Group& group) {
  const std::string reason = group.nodes.empty() ? "" : text_at(*group.nodes.front(), "reason");
  return reason.empty() ? "none" : reason;
}

std::function<std::string(const Group&)> always(std::string text) {
  return [text = std::move(text)](const Group&) { return text; };
}

std::span<const Field<Group>> fields() {
  static const std::vector<Field<Group>> kFields = {
      {'P', "Partition", "PARTITION", always(std::string(kPartition) + "*")},
      {'R', "PartitionName", "PARTITION", always(std::string(kPartition))},
      {'a', "Available", "AVAIL", always("up")},
      {'l', "Time", "TIMELIMIT", always("infinite")},
      {'L', "DefaultTime", "DEFAULTTIME", always("n/a")},
      {'s', "Size", "JOB_SIZE", always("1")},
      {'r', "Root", "ROOT", always("no")},
      {'h', "OverSubscribe", "OVERSUBS", always("NO")},
      {'g', "Groups", "GROUPS", always("all")},
      {'D', "Nodes", "NODES",
       [](const Group& group) { return fmt::format("{}", group.nodes.size()); }},
      {'t', "StateCompact", "STATE",
       [](const Group& group) { return std::string(short_state(state_text(group))); }},
      {'T', "StateLong", "STATE", state_text},
      {0, "State", "STATE", state_text},
      {'N', "NodeList", "NODELIST", names_of},
      {'n', "NodeHost", "HOSTNAMES", names_of},
      {'c', "CPUs", "CPUS",
       [](const Group& g) { return least(g, [](const Json& n) { return number(n, "cpus"); }); }},
      {'m', "Memory", "MEMORY",
       [](const Group& g) {
         return least(g,
                      [](const Json& n) { return number(n, "memory_bytes") / base::kMiB.value(); });
       }},
      {'e', "FreeMem", "FREE_MEM",
       [](const Group& g) {
         return least(g, [](const Json& n) {
           return (number(n, "memory_bytes") - number(n, "memory_allocated_bytes")) /
                  base::kMiB.value();
         });
       }},
      {'G', "Gres", "GRES", gres_of},
      {0, "GresUsed", "GRES_USED",
       [](const Group& g) {
         return fmt::format("gpu:{}", sum(g, "total_gpus") - sum(g, "available_gpus"));
       }},
      {'C', "CPUsState", "CPUS(A/I/O/T)", cpus_by_use},
      {'F', "NodeAIOT", "NODES(A/I/O/T)", nodes_by_use},
      {'A', "NodeAI", "NODES(A/I)",
       [](const Group& g) {
         const std::string all = nodes_by_use(g);
         return all.substr(0, all.find('/', all.find('/') + 1));
       }},
      {'E', "Reason", "REASON", reason_text},
      {'z', "SocketCoreThread", "S:C:T", always("n/a")},
      {'d', "Disk", "TMP_DISK", always("0")},
      {'w', "Weight", "WEIGHT", always("1")},
      {'f', "Features", "AVAIL_FEATURES", always("(null)")},
      {'V', "Cluster", "CLUSTER", always(std::string(kCluster))},
  };
  return kFields;
}

base::Result<std::vector<Bound<Group>>> columns_of(const Settings& settings) {
  if (settings.has("Format")) {
    TRY_ASSIGN(const auto columns, named_columns(settings.value("Format"), ':', 20));
    return bound(columns, fields());
  }
  std::string_view format = kUsual;
  if (settings.has("format")) {
    format = settings.value("format");
  } else if (settings.has("Node")) {
    format = settings.has("long") ? kNodesLong : kNodes;
  } else if (settings.has("summarize")) {
    format = kSummary;
  } else if (settings.has("long")) {
    format = kLong;
  }
  TRY_ASSIGN(const auto columns, letter_columns(format));
  return bound(columns, fields());
}

bool is_wanted(const Json& node, const Settings& settings) {
  if (settings.has("nodes")) {
    const auto names = host_names(settings.value("nodes"));
    if (std::ranges::find(names, text_at(node, "name")) == names.end()) return false;
  }
  if (!settings.has("states")) return true;
  const std::string_view state = state_of_node(node);
  for (const std::string& name : comma_separated(settings.value("states"))) {
    const std::string plain = plain_name(name);
    if (plain == "all" || plain == state || plain == short_state(state)) return true;
  }
  return false;
}

// True where the columns tell of single nodes, so that nodes in different states cannot share a
// line.
bool tells_of_nodes(const std::vector<Bound<Group>>& columns) {
  constexpr std::string_view kOfPartitions = "PRalLsrhgFVACD";
  return std::ranges::any_of(columns, [&](const Bound<Group>& column) {
    return column.field != nullptr &&
           (column.field->letter == 0 ||
            kOfPartitions.find(column.field->letter) == std::string_view::npos);
  });
}

std::vector<Group> groups_of(const Json& status, const Json& nodes, const Settings& settings,
                             bool by_state) {
  std::vector<Group> groups;
  for (const Json& node : nodes) {
    if (!is_wanted(node, settings)) continue;
    const auto same = std::ranges::find_if(groups, [&](const Group& group) {
      return !settings.has("Node") &&
             (!by_state || state_of_node(*group.nodes.front()) == state_of_node(node));
    });
    if (same != groups.end()) {
      same->nodes.push_back(&node);
    } else {
      groups.push_back({{&node}, status});
    }
  }
  if (groups.empty()) groups.push_back({{}, status});
  return groups;
}

}  // namespace

int sinfo(Call& call) {
  const auto given = call.given({kOptions, kSynopsis});
  if (!given) return given.error();
  const Settings& settings = given->settings;
  const auto columns = columns_of(settings);
  if (!columns) return call.fail(columns.error());
  auto client = call.client();
  if (!client) return 1;
  const auto body = client->get("/v1/status");
  if (!body) return call.fail(body.error());
  const auto status = cli::parse_object(*body);
  if (!status) return call.fail("the daemon's answer is no JSON object");
  const Json nodes = cli::in_node_order(cli::list_at(*status, "nodes"), "/name");

  std::vector<Group> groups;
  if (!settings.has("partition") || is_listed(kPartition, settings.value("partition"))) {
    groups = groups_of(*status, nodes, settings, tells_of_nodes(*columns));
  }
  call.console().out(rendered(*columns, groups, !settings.has("noheader")));
  return call.console().out_failed() ? 1 : 0;
}

}  // namespace gpu_platform::shims
