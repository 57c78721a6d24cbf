#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "config/configuration.h"
#include "config/yaml/structure_reader.h"

namespace gpu_platform::config {

// Reads the power limits of GPUs (health.power_limits). Problems go to `problems` with their
// places.
class PowerLimitsReader : private StructureReader {
 public:
  // `problems` must outlive it.
  explicit PowerLimitsReader(std::vector<Problem>& problems) : StructureReader(problems) {}

  using StructureReader::in_file;

  static bool reads(std::string_view path) { return path == "health.power_limits"; }
  void read(const std::string& path, const YAML::Node& value);
  // Sets what was read.
  void finish(Configuration& configuration);

 private:
  std::vector<PowerLimit> limits_;
};

}  // namespace gpu_platform::config
