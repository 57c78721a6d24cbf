#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "config/configuration.h"
#include "config/yaml/structure_reader.h"

namespace gpu_platform::config {

// Reads the lists about alerts (alerts.rules, alerts.channels, alerts.routes) as words. Problems go
// to `problems` with their places.
class AlertsReader : private StructureReader {
 public:
  // `problems` must outlive it.
  explicit AlertsReader(std::vector<Problem>& problems) : StructureReader(problems) {}

  using StructureReader::in_file;
  static bool reads(std::string_view path);
  void read(const std::string& path, const YAML::Node& list);
  // Sets what was read, with the place of each entry.
  void finish(Configuration& configuration);

 private:
  void read_rule(const YAML::Node& map);
  void read_route(const YAML::Node& map);
  void read_channel(const YAML::Node& map);
  // Returns the text of a scalar of one line; nothing, and reports it, if it is none.
  std::optional<std::string> text(const YAML::Node& node, std::string_view what);
  std::vector<std::string> texts(const YAML::Node& list, std::string_view what);
  std::optional<bool> truth(const YAML::Node& node, std::string_view what);
  void note_place(const YAML::Node& map, std::size_t index);

  std::vector<AlertRule> rules_;
  std::vector<AlertRoute> routes_;
  std::vector<AlertChannel> channels_;
  std::vector<KeyPlace> places_;
};

}  // namespace gpu_platform::config
