#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "config/configuration.h"
#include "config/yaml/structure_reader.h"

namespace gpu_platform::config {

// Reads the site's rules about faults of GPUs (health.rules) as words: which rules and actions
// there are is not known here. Problems go to `problems` with their places.
class HealthRulesReader : private StructureReader {
 public:
  // `problems` must outlive it.
  explicit HealthRulesReader(std::vector<Problem>& problems) : StructureReader(problems) {}

  using StructureReader::in_file;
  static bool reads(std::string_view path) { return path == "health.rules"; }
  void read(const std::string& path, const YAML::Node& list);
  // Sets what was read, with the place of each entry.
  void finish(Configuration& configuration);

 private:
  void read_rule(const YAML::Node& map);

  std::vector<model::HealthRule> rules_;
  std::vector<KeyPlace> places_;
};

}  // namespace gpu_platform::config
