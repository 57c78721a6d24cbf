#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "config/configuration.h"
#include "config/yaml/structure_reader.h"

namespace gpu_platform::config {

// Reads the roles of users (access.roles) and the users of identities. Problems go to `problems`
// with their places.
class AccessReader : private StructureReader {
 public:
  // `problems` must outlive it.
  explicit AccessReader(std::vector<Problem>& problems) : StructureReader(problems) {}

  using StructureReader::in_file;

  static bool reads(std::string_view path) {
    return path == "access.roles" || path == "access.identities";
  }
  void read(const std::string& path, const YAML::Node& value);
  // Sets what was read.
  void finish(Configuration& configuration);

 private:
  void read_roles(const YAML::Node& value);
  void read_identities(const YAML::Node& value);

  std::map<std::string, model::Role, std::less<>> roles_;
  std::map<std::string, std::string, std::less<>> identities_;
};

}  // namespace gpu_platform::config
