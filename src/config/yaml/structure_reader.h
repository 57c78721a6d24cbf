#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/units.h"
#include "config/configuration.h"
#include "config/yaml/document.h"

namespace gpu_platform::config {

// What the readers of schema.h's structures() have in common: names, counts and times of one
// structure, and problems with their places.
class StructureReader {
 public:
  // Says which file the next structures stand in; empty: the configuration itself.
  void in_file(std::string file) { file_ = std::move(file); }

 protected:
  // `problems` must outlive it.
  explicit StructureReader(std::vector<Problem>& problems) : problems_(problems) {}

  // Calls visit(name, value) for the entries of a map, each name once.
  template <class Visit>
  void for_each_entry(const YAML::Node& map, const Visit& visit) {
    if (map.IsNull()) return;
    if (!map.IsMap()) {
      report(map, fmt::format("'{}' must be names with their values, not {}", key_, kind_of(map)));
      return;
    }
    std::set<std::string> seen;
    for (const auto& entry : map) {
      const YAML::Node name = entry.first;
      if (!word(name, "name")) continue;
      if (!seen.insert(name.Scalar()).second) {
        report(name,
               fmt::format("'{}' is in this part of '{}' twice", printable(name.Scalar()), key_));
        continue;
      }
      visit(name, entry.second);
    }
  }
  void report_unknown(const YAML::Node& name, std::span<const std::string_view> allowed);
  std::optional<std::string> word(const YAML::Node& node, std::string_view what);
  // A list of users by their names, each once. Root needs no rights and must not be in it.
  std::vector<std::string> users(const YAML::Node& list, std::string_view what);
  std::optional<std::uint32_t> count(const YAML::Node& node, std::string_view what,
                                     std::uint64_t least);
  std::optional<base::Duration> duration(const YAML::Node& node, std::string_view what);
  void report(const YAML::Node& at, std::string message);

  std::vector<Problem>& problems_;
  std::string key_;   // of the structure that is being read
  std::string file_;  // that it is in; empty: the configuration
};

}  // namespace gpu_platform::config
