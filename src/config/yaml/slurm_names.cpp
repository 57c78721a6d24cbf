#include "config/yaml/slurm_names.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "model/gpu_catalogue.h"

namespace gpu_platform::config {

namespace {

constexpr std::array<std::string_view, 7> kPartitionKeys = {
    "default", "gpu_types", "priority", "max_time", "default_time", "max_gpus", "max_nodes"};
constexpr std::array<std::string_view, 3> kQosKeys = {"priority", "max_time", "max_gpus"};

// They stand in lists between commas, and in columns.
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

}  // namespace

bool SlurmNamesReader::is_good_name(const YAML::Node& name) {
  if (std::ranges::all_of(name.Scalar(), is_letter)) return true;
  report(name, fmt::format("the name '{}' in '{}' must have letters, digits, '-', '_' and '.' only",
                           printable(name.Scalar()), key_));
  return false;
}

bool SlurmNamesReader::truth(const YAML::Node& node, std::string_view what) {
  const std::string text = node.IsScalar() ? node.Scalar() : std::string();
  if (text != "true" && text != "false")
    report(node, fmt::format("'{}' in '{}' must be true or false", what, key_));
  return text == "true";
}

std::optional<model::PriorityClass> SlurmNamesReader::priority(const YAML::Node& node) {
  constexpr std::pair<std::string_view, model::PriorityClass> kWords[] = {
      {"critical", model::PriorityClass::kCritical},
      {"high", model::PriorityClass::kHigh},
      {"medium", model::PriorityClass::kMedium},
      {"low", model::PriorityClass::kLow}};
  for (const auto& [word, priority] : kWords) {
    if (node.IsScalar() && node.Scalar() == word) return priority;
  }
  report(node, fmt::format("'priority' in '{}' must be critical, high, medium or low", key_));
  return std::nullopt;
}

std::optional<base::Duration> SlurmNamesReader::time_limit(const YAML::Node& node,
                                                           std::string_view what) {
  const auto limit = duration(node, what);
  if (limit == base::Duration())
    report(node, fmt::format("'{}' in '{}' must be more than 0", what, key_));
  return limit;
}

std::vector<std::string> SlurmNamesReader::gpu_types(const YAML::Node& list) {
  std::vector<std::string> types;
  if (!list.IsSequence()) {
    report(list,
           fmt::format("'gpu_types' in '{}' must be a list ([H100]), not {}", key_, kind_of(list)));
    return types;
  }
  for (const auto& item : list) {
    // A type that is not in the catalogue is named as the driver names its model.
    if (const auto type = word(item, "gpu_types"))
      types.push_back(model::canonical_gpu_type(*type).value_or(*type));
  }
  return types;
}

void SlurmNamesReader::read_partition(const YAML::Node& name, const YAML::Node& map) {
  if (!is_good_name(name)) return;
  SlurmPartition partition{.name = name.Scalar()};
  for_each_entry(map, [&](const YAML::Node& key, const YAML::Node& value) {
    const std::string& what = key.Scalar();
    if (what == "default") {
      partition.is_default = truth(value, what);
    } else if (what == "gpu_types") {
      partition.gpu_types = gpu_types(value);
    } else if (what == "priority") {
      partition.priority = priority(value);
    } else if (what == "max_time") {
      partition.max_time = time_limit(value, what);
    } else if (what == "default_time") {
      partition.default_time = time_limit(value, what);
    } else if (what == "max_gpus") {
      partition.max_gpus = count(value, what, 0);
    } else if (what == "max_nodes") {
      partition.max_nodes = count(value, what, 1);
    } else {
      report_unknown(key, kPartitionKeys);
    }
  });
  if (partition.max_time && partition.default_time && *partition.default_time > *partition.max_time)
    report(map, fmt::format("'default_time' in '{}' must be at most max_time", key_));
  const bool has_default =
      std::ranges::find(names_.partitions, true, &SlurmPartition::is_default) !=
      names_.partitions.end();
  if (partition.is_default && has_default)
    report(map, fmt::format("'default' in '{}' is for one partition", key_));
  names_.partitions.push_back(std::move(partition));
}

void SlurmNamesReader::read_qos(const YAML::Node& name, const YAML::Node& map) {
  if (!is_good_name(name)) return;
  SlurmQos qos{.name = name.Scalar()};
  for_each_entry(map, [&](const YAML::Node& key, const YAML::Node& value) {
    const std::string& what = key.Scalar();
    if (what == "priority") {
      qos.priority = priority(value);
    } else if (what == "max_time") {
      qos.max_time = time_limit(value, what);
    } else if (what == "max_gpus") {
      qos.max_gpus = count(value, what, 0);
    } else {
      report_unknown(key, kQosKeys);
    }
  });
  names_.qos.push_back(std::move(qos));
}

void SlurmNamesReader::read(const std::string& path, const YAML::Node& value) {
  key_ = path;
  for_each_entry(value, [&](const YAML::Node& name, const YAML::Node& map) {
    if (path == "slurm.partitions") {
      read_partition(name, map);
    } else {
      read_qos(name, map);
    }
  });
}

void SlurmNamesReader::finish(Configuration& configuration) {
  auto& partitions = names_.partitions;
  const bool has_default =
      std::ranges::find(partitions, true, &SlurmPartition::is_default) != partitions.end();
  if (!partitions.empty() && !has_default) partitions.front().is_default = true;
  names_.shards_per_gpu = configuration.slurm.shards_per_gpu;
  configuration.slurm = std::move(names_);
}

}  // namespace gpu_platform::config
