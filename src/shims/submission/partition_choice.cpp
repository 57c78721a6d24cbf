#include "shims/submission/partition_choice.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

using Refused = std::optional<SiteRefusal>;

constexpr std::string_view kTimeReason =
    "Requested time limit is invalid (missing or exceeds some limit)";
constexpr std::string_view kSizeReason =
    "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)";

Refused too_long(const std::string& whose, const std::optional<base::Duration>& most,
                 const std::optional<base::Duration>& limit) {
  if (!most || !limit || *limit <= *most) return std::nullopt;
  return SiteRefusal{fmt::format("--time={} is more than {} of {}", long_elapsed(*limit),
                                 long_elapsed(*most), whose),
                     std::string(kTimeReason)};
}

Refused too_many_gpus(const std::string& whose, const std::optional<std::uint32_t>& most,
                      const Resources& resources) {
  const std::uint64_t gpus = std::uint64_t{resources.gpus.count} * resources.nodes;
  if (!most || gpus <= *most) return std::nullopt;
  return SiteRefusal{fmt::format("the job asks for {} GPUs, and {} allows {}", gpus, whose, *most),
                     std::string(kSizeReason)};
}

bool names_same_type(std::string_view a, std::string_view b) {
  const std::string first = lower_case(a);
  const std::string second = lower_case(b);
  return first.starts_with(second) || second.starts_with(first);
}

Refused wrong_type(const std::string& whose, const Partition& partition,
                   const Resources& resources) {
  const std::string& type = resources.gpus.type;
  const bool has = type.empty() || partition.gpu_types.empty() ||
                   std::ranges::any_of(partition.gpu_types, [&](const std::string& each) {
                     return names_same_type(each, type);
                   });
  if (has) return std::nullopt;
  return SiteRefusal{fmt::format("{} has no GPUs of type {}; it has {}", whose, type,
                                 fmt::join(partition.gpu_types, ", ")),
                     "Requested node configuration is not available"};
}

// What keeps the job out of the partition.
Refused refusal_of(const Partition& partition, const Resources& resources,
                   const std::optional<base::Duration>& time_limit) {
  const std::string whose = fmt::format("the partition {}", partition.name);
  if (auto long_one = too_long(whose, partition.max_time, time_limit)) return long_one;
  if (auto many = too_many_gpus(whose, partition.max_gpus, resources)) return many;
  if (auto wrong = wrong_type(whose, partition, resources)) return wrong;
  if (!partition.max_nodes || resources.nodes <= *partition.max_nodes) return std::nullopt;
  return SiteRefusal{fmt::format("the job asks for {} nodes, and {} allows {}", resources.nodes,
                                 whose, *partition.max_nodes),
                     "Node count specification invalid"};
}

// The one of the names that takes the job.
std::expected<const Partition*, SiteRefusal> partition_for(
    const Site& site, const Settings& settings, const Resources& resources,
    const std::optional<base::Duration>& time_limit) {
  std::vector<std::string> names = comma_separated(settings.value("partition"));
  if (names.empty() || !site.names_partitions) names = {default_partition(site).name};
  Refused first;
  const Partition* taken = nullptr;
  for (const std::string& name : names) {
    const Partition* partition = partition_named(site, name);
    if (partition == nullptr) {
      return std::unexpected(
          SiteRefusal{fmt::format("invalid partition specified: {}; there are: {}", name,
                                  partition_names(site)),
                      "Invalid partition name specified"});
    }
    auto refusal = refusal_of(*partition, resources, time_limit);
    if (!refusal && taken == nullptr) taken = partition;
    if (refusal && !first) first = std::move(refusal);
  }
  if (taken == nullptr) return std::unexpected(std::move(*first));
  return taken;
}

std::expected<const Qos*, SiteRefusal> qos_for(const Site& site, const Settings& settings,
                                               const Resources& resources,
                                               const std::optional<base::Duration>& time_limit) {
  const std::string& name = settings.value("qos");
  const Qos* qos = qos_named(site, name.empty() ? "normal" : name);
  if (!site.names_qos || (qos == nullptr && name.empty())) return nullptr;
  if (qos == nullptr) {
    return std::unexpected(
        SiteRefusal{fmt::format("invalid qos specified: {}; there are: {}", name, qos_names(site)),
                    "Invalid qos specification"});
  }
  const std::string whose = fmt::format("the QOS {}", qos->name);
  if (auto long_one = too_long(whose, qos->max_time, time_limit))
    return std::unexpected(std::move(*long_one));
  if (auto many = too_many_gpus(whose, qos->max_gpus, resources))
    return std::unexpected(std::move(*many));
  return qos;
}

// Of a job that gives none: the partition's usual one, or the longest that is allowed.
std::optional<base::Duration> time_limit_of(const Partition& partition, const Qos* qos) {
  std::optional<base::Duration> limit =
      partition.default_time ? partition.default_time : partition.max_time;
  if (qos != nullptr && qos->max_time && (!limit || *qos->max_time < *limit)) limit = qos->max_time;
  return limit;
}

}  // namespace

std::expected<SiteChoice, SiteRefusal> choose(const Site& site, const Settings& settings,
                                              const Resources& resources,
                                              std::optional<base::Duration> time_limit) {
  const auto partition = partition_for(site, settings, resources, time_limit);
  if (!partition) return std::unexpected(partition.error());
  const auto qos = qos_for(site, settings, resources, time_limit);
  if (!qos) return std::unexpected(qos.error());
  SiteChoice choice;
  choice.partition = (*partition)->name;
  const std::string& named = settings.value("partition");
  if (!site.names_partitions && !named.empty() && named != choice.partition) {
    choice.partition = named;
    choice.warnings.push_back(fmt::format(
        "--partition={} is kept as a name only: the site defines no partitions, and all nodes are "
        "one, \"{}\"",
        named, (*partition)->name));
  }
  choice.gpu_types = (*partition)->gpu_types;
  choice.priority = (*partition)->priority;
  choice.qos = settings.value("qos");
  if (*qos != nullptr) {
    choice.qos = (*qos)->name;
    if (!(*qos)->priority.empty()) choice.priority = (*qos)->priority;
  } else if (const auto priority = priority_of_qos(choice.qos)) {
    choice.priority = upper_case(*priority);
  } else if (!choice.qos.empty()) {
    choice.warnings.push_back(fmt::format(
        "--qos={} is ignored: the site names none, and critical, high, medium and low are "
        "priorities here",
        choice.qos));
  }
  if (!time_limit) choice.time_limit = time_limit_of(**partition, *qos);
  return choice;
}

}  // namespace gpu_platform::shims
