#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "base/result.h"

// Typed reading of a kubeconfig file. No exception of the YAML library leaves it. Errors read
// "FILE: KEY: what is wrong", and never show a value, which may be a secret.

namespace gpu_platform::kubernetes {

// A mapping of the file, with the path of keys that leads to it. Unknown keys are no errors: other
// clients have keys of their own.
class Section {
 public:
  // Errors: no YAML, no mapping, empty, too large.
  static base::Result<Section> parse(std::string_view yaml, const std::string& file);

  bool has(const std::string& key) const;
  // Missing or null: empty, false or none. Of another kind: an error.
  base::Result<std::string> text(const std::string& key) const;
  base::Result<bool> flag(const std::string& key) const;
  base::Result<std::vector<std::string>> texts(const std::string& key) const;
  base::Result<std::string> base64(const std::string& key) const;  // decoded
  base::Result<std::vector<Section>> list(const std::string& key) const;
  base::Result<Section> section(const std::string& key) const;  // missing: an error

  // The same section, which messages call by another path.
  Section renamed(std::string path) const;
  std::unexpected<base::Error> error(const std::string& key, std::string_view what) const;

 private:
  Section(YAML::Node node, std::string file, std::string path)
      : node_(std::move(node)), file_(std::move(file)), path_(std::move(path)) {}

  YAML::Node find(const std::string& key) const;
  std::string path_of(const std::string& key) const;

  YAML::Node node_;
  std::string file_;
  std::string path_;
};

}  // namespace gpu_platform::kubernetes
