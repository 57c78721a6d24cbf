#pragma once

#include <string>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "config/configuration.h"
#include "config/yaml/structure_reader.h"

namespace gpu_platform::config {

// Reads the names of Slurm's commands (slurm.partitions, slurm.qos). Problems go to `problems` with
// their places.
class SlurmNamesReader : private StructureReader {
 public:
  // `problems` must outlive it.
  explicit SlurmNamesReader(std::vector<Problem>& problems) : StructureReader(problems) {}

  using StructureReader::in_file;
  static bool reads(std::string_view path) {
    return path == "slurm.partitions" || path == "slurm.qos";
  }
  // The value of the structure `path`.
  void read(const std::string& path, const YAML::Node& value);
  // Sets what was read.
  void finish(Configuration& configuration);

 private:
  void read_partition(const YAML::Node& name, const YAML::Node& map);
  void read_qos(const YAML::Node& name, const YAML::Node& map);
  bool is_good_name(const YAML::Node& name);
  bool truth(const YAML::Node& node, std::string_view what);
  std::optional<model::PriorityClass> priority(const YAML::Node& node);
  std::optional<base::Duration> time_limit(const YAML::Node& node, std::string_view what);
  std::vector<std::string> gpu_types(const YAML::Node& list);

  SlurmNames names_;
};

}  // namespace gpu_platform::config
