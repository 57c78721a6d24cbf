#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "config/configuration.h"
#include "config/yaml/structure_reader.h"

namespace gpu_platform::config {

// Reads which GPUs several jobs may share, and how (sharing). Without it, no GPU is shared.
// Problems go to `problems` with their places.
class SharingReader : private StructureReader {
 public:
  // `problems` must outlive it.
  explicit SharingReader(std::vector<Problem>& problems) : StructureReader(problems) {}

  using StructureReader::in_file;
  static bool reads(std::string_view path) { return path == "sharing"; }
  void read(const std::string& path, const YAML::Node& map);
  // Sets what was read.
  void finish(Configuration& configuration);

 private:
  void read_entry(const YAML::Node& name, const YAML::Node& value);
  // The words of a list that is not empty.
  std::vector<std::string> words(const YAML::Node& list, std::string_view what);
  // The place of the value among the words, which may have '_' for '-'; the number of words, with a
  // report, if it is none of them.
  std::size_t choice(const YAML::Node& node, std::string_view what,
                     std::span<const std::string_view> allowed);
  void read_modes(const YAML::Node& list);
  void read_slice(const YAML::Node& node);
  void read_mps_control(const YAML::Node& node);

  model::Sharing sharing_;
  MpsControl mps_control_;
};

}  // namespace gpu_platform::config
