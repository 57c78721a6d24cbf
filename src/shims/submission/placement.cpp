#include "shims/submission/placement.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/job_spec.h"
#include "shims/steps/step_variables.h"
#include "shims/submission/start_check.h"
#include "shims/text/slurm_values.h"
#include "shims/views/node_view.h"

namespace gpu_platform::shims {

namespace {

std::string lower_letters_and_digits(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') result.push_back(static_cast<char>(c + 32));
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) result.push_back(c);
  }
  return result;
}

// The GPU types of the cluster, or nothing where the daemon does not say.
std::vector<std::string> cluster_types(client::Client& client) {
  const auto status = client.ask<v1::Status>("/v1/status", "the answer");
  std::vector<std::string> types;
  if (!status) return types;
  for (const v1::Gpu& gpu : status->gpus()) types.push_back(lower_letters_and_digits(gpu.type()));
  return types;
}

// "-C a100|h100": types of GPU that are here; "gpu" is any of them, so no type is named. Nodes have
// no other features, so any other name is one that no node has, and a job that ran in spite of it
// would run on the wrong node.
base::Result<std::vector<std::string>> types_of_constraint(client::Client& client,
                                                           std::string_view constraint) {
  const std::vector<std::string> known = cluster_types(client);
  std::vector<std::string> types;
  bool is_any_type = false;
  std::string_view rest = constraint;
  while (!rest.empty()) {
    const std::size_t bar = rest.find('|');
    const std::string name(rest.substr(0, bar));
    const std::string plain = lower_letters_and_digits(name);
    const bool is_name = name.find_first_of("&,*[]()!") == std::string::npos && !plain.empty();
    const bool is_any = plain == "gpu" && !known.empty();
    is_any_type = is_any_type || is_any;
    const bool is_type =
        is_any || (is_name && std::ranges::any_of(known, [&](const std::string& type) {
                     return type.starts_with(plain);
                   }));
    if (!is_type) {
      return base::invalid(
          "--constraint",
          fmt::format("'{}': invalid feature specification: the only features of nodes are 'gpu' "
                      "and the types of their GPUs, one or several as TYPE|TYPE",
                      name));
    }
    types.push_back(name);
    rest.remove_prefix(bar == std::string_view::npos ? rest.size() : bar + 1);
  }
  if (is_any_type) types.clear();
  return types;
}

bool is_same_type(std::string_view a, std::string_view b) {
  const std::string first = lower_letters_and_digits(a);
  const std::string second = lower_letters_and_digits(b);
  return first.starts_with(second) || second.starts_with(first);
}

base::Status check_constraint(const Settings& settings, const Resources& resources,
                              const SiteChoice& choice, const std::vector<std::string>& types) {
  if (resources.gpus.count == 0 && !settings.has("exclusive")) {
    return base::invalid("--constraint",
                         "the job asks for no GPU, and nodes have no features but their GPUs' "
                         "types: name nodes with --nodelist");
  }
  if (!resources.gpus.type.empty()) {
    return base::invalid("--constraint",
                         "the job sets a type of GPU already, with --gres or --gpus; set it "
                         "once");
  }
  for (const std::string& type : types) {
    const bool is_there = choice.gpu_types.empty() ||
                          std::ranges::any_of(choice.gpu_types, [&](const std::string& each) {
                            return is_same_type(each, type);
                          });
    if (!is_there) {
      return base::invalid("--constraint",
                           fmt::format("the partition {} has no {}; it has {}", choice.partition,
                                       type, fmt::join(choice.gpu_types, ", ")));
    }
  }
  return {};
}

// The types that the job may have; none: any.
base::Result<std::vector<std::string>> types_for(client::Client& client, const Settings& settings,
                                                 const Resources& resources,
                                                 const SiteChoice& choice) {
  if (!settings.value("constraint").empty()) {
    TRY_ASSIGN(auto types, types_of_constraint(client, settings.value("constraint")));
    if (!types.empty()) {
      TRY(check_constraint(settings, resources, choice, types));
      return types;
    }
  }
  if (!resources.gpus.type.empty()) return std::vector<std::string>{resources.gpus.type};
  return choice.gpu_types;
}

bool has_type(const NodeView& node, const std::vector<std::string>& types) {
  Partition of_types;
  of_types.gpu_types = types;
  return is_in(node, of_types);
}

base::Result<std::vector<NodeView>> nodes_of(client::Client& client) {
  auto nodes = list_nodes(client);
  if (!nodes) return base::fail(base::ErrorCode::kUnavailable, nodes.error().message);
  return std::move(*nodes);
}

// A job without GPUs is kept to the nodes of its partition by their names.
base::Status put_named_nodes(client::Client& client, const Settings& settings,
                             const SiteChoice& choice, v1::JobSpec& spec) {
  if (settings.has("exclude")) spec.add_exclude(settings.value("exclude"));
  if (settings.has("nodelist")) {
    spec.add_nodelist(settings.value("nodelist"));
    return {};
  }
  if (choice.gpu_types.empty() || spec.gpus() > 0) return {};
  TRY_ASSIGN(const auto nodes, nodes_of(client));
  for (const NodeView& node : nodes) {
    if (has_type(node, choice.gpu_types)) spec.add_nodelist(node.name);
  }
  if (!spec.nodelist().empty()) return {};
  return base::fail(base::ErrorCode::kFailedPrecondition,
                    fmt::format("the partition {} has no nodes", choice.partition), "--partition");
}

bool is_listed_in(const Settings& settings, const char* option, const std::string& name) {
  const auto names = host_names(settings.value(option));
  return std::ranges::find(names, name) != names.end();
}

bool may_have(const Settings& settings, const std::vector<std::string>& types,
              const NodeView& node) {
  return has_type(node, types) && !is_listed_in(settings, "exclude", node.name) &&
         (!settings.has("nodelist") || is_listed_in(settings, "nodelist", node.name));
}

NodeSize size_of(const NodeView& node, const std::vector<std::string>& types) {
  NodeSize size;
  for (const NodeGpus& each : node.gpus) {
    const bool is_asked_for =
        types.empty() || std::ranges::any_of(types, [&](const std::string& type) {
          return is_same_type(each.type, type);
        });
    if (!is_asked_for) continue;
    const auto count = static_cast<std::uint32_t>(each.total);
    size.gpus += count;
    size.gpus_alike = std::max(size.gpus_alike, count);
  }
  size.cpus = static_cast<std::uint32_t>(node.cpus);
  return size;
}

// GPUs and CPUs of a whole node, and the nodes of that size.
struct WholeNodes {
  std::int64_t gpus = 0;
  std::int64_t cpus = 0;
  std::vector<std::string> names;
};

std::vector<WholeNodes> nodes_by_size(const std::vector<NodeView>& nodes, const Settings& settings,
                                      const std::vector<std::string>& types) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::string>> names;
  for (const NodeView& node : nodes) {
    if (!may_have(settings, types, node)) continue;
    std::int64_t gpus = 0;
    for (const NodeGpus& each : node.gpus) gpus += each.total;
    names[{gpus, node.cpus}].push_back(node.name);
  }
  std::vector<WholeNodes> sizes;
  for (auto& [size, of_size] : names) sizes.push_back({size.first, size.second, of_size});
  return sizes;
}

void put_size(const WholeNodes& size, const std::vector<std::string>& types, v1::JobSpec& spec) {
  spec.set_gpus(static_cast<std::uint32_t>(size.gpus));
  spec.set_cpus(static_cast<std::uint32_t>(size.cpus));
  if (size.gpus > 0 && !types.empty()) spec.mutable_gpu_types()->Assign(types.begin(), types.end());
}

// Of sizes that differ the one with which the job starts first; of several the smallest, because
// they come in this order.
base::Result<WholeNodes> first_to_start(client::Client& client,
                                        const std::vector<WholeNodes>& sizes,
                                        const std::vector<std::string>& types, std::int64_t nodes,
                                        base::Instant now, const v1::JobSpec& spec) {
  std::optional<WholeNodes> best;
  std::optional<base::Instant> start;
  for (const WholeNodes& size : sizes) {
    if (std::ssize(size.names) < nodes) continue;
    v1::JobSpec asked = spec;
    put_size(size, types, asked);
    asked.mutable_nodelist()->Assign(size.names.begin(), size.names.end());
    const auto check = check_start(client, asked, now);
    if (!check) return base::fail(base::ErrorCode::kUnavailable, check.error().message);
    if (check->is_never) continue;
    const bool is_sooner = check->start && (!start || *check->start < *start);
    if (best && !is_sooner) continue;
    best = size;
    start = check->start;
  }
  if (best) return *std::move(best);
  return base::fail(base::ErrorCode::kFailedPrecondition,
                    "the nodes differ in their GPUs or CPUs, and no size of them has as many nodes "
                    "as the job: the nodes of one job are alike here. Submit a job for each size, "
                    "or ask for what each node has with --gpus-per-node and -c",
                    "--exclusive");
}

// All GPUs and CPUs of the nodes, which are alike in one job.
base::Status put_whole_nodes(client::Client& client, const Settings& settings,
                             const std::vector<std::string>& types, base::Instant now,
                             v1::JobSpec& spec) {
  TRY_ASSIGN(const auto nodes, nodes_of(client));
  const std::vector<WholeNodes> sizes = nodes_by_size(nodes, settings, types);
  if (sizes.empty()) return {};
  if (sizes.size() == 1) {
    put_size(sizes.front(), types, spec);
    return {};
  }
  TRY_ASSIGN(const WholeNodes size,
             first_to_start(client, sizes, types, spec.has_nodes() ? spec.nodes() : 1, now, spec));
  put_size(size, types, spec);
  if (!settings.has("nodelist"))
    spec.mutable_nodelist()->Assign(size.names.begin(), size.names.end());
  return {};
}

}  // namespace

base::Result<std::uint32_t> fewest_nodes(client::Client& client, const Settings& settings,
                                         const Resources& resources, const SiteChoice& choice) {
  TRY_ASSIGN(const auto types, types_for(client, settings, resources, choice));
  TRY_ASSIGN(const auto nodes, nodes_of(client));
  std::vector<NodeSize> sizes;
  for (const NodeView& node : nodes)
    if (may_have(settings, types, node)) sizes.push_back(size_of(node, types));
  return fewest_nodes(resources, sizes);
}

base::Status put_placement(client::Client& client, const Settings& settings,
                           const Resources& resources, const SiteChoice& choice, base::Instant now,
                           v1::JobSpec& spec) {
  TRY_ASSIGN(const auto types, types_for(client, settings, resources, choice));
  const std::string& exclusive = settings.value("exclusive");
  if (settings.has("exclusive") && exclusive != "user" && exclusive != "mcs" && exclusive != "no") {
    if (!exclusive.empty() && exclusive != "exclusive" && exclusive != "yes")
      return base::invalid("--exclusive", fmt::format("'{}' is neither user nor mcs", exclusive));
    TRY(put_whole_nodes(client, settings, types, now, spec));
  }
  if (spec.gpus() > 0 && !types.empty())
    spec.mutable_gpu_types()->Assign(types.begin(), types.end());
  return put_named_nodes(client, settings, choice, spec);
}

}  // namespace gpu_platform::shims
