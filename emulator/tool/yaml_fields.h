#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

// A strict reader of YAML maps. The first mistake is kept with file, line and field; after it every
// getter returns an empty value, so that the code that fills a structure reads straight through and
// asks once at the end.

namespace gpu_emulator {

class YamlErrors {
 public:
  explicit YamlErrors(std::string file) : file_(std::move(file)) {}

  void add(const YAML::Node& at, std::string_view field, std::string_view what);
  const std::optional<gpu_platform::base::Error>& first() const { return first_; }

 private:
  std::string file_;
  std::optional<gpu_platform::base::Error> first_;
};

struct Choice {
  std::string_view name;
  std::uint32_t value;
};

// One map, with exactly the named keys; `optional` ones may be missing.
class YamlFields {
 public:
  // `path` names the map in errors ("gpus[3]"), empty for the whole file. `errors` outlives this.
  YamlFields(YamlErrors& errors, const YAML::Node& node, std::string path,
             std::initializer_list<std::string_view> keys,
             std::initializer_list<std::string_view> optional = {});

  bool has(std::string_view key) const { return node(key).IsDefined(); }

  std::string text(std::string_view key, std::size_t max_length);
  std::uint32_t number(std::string_view key, std::uint64_t min, std::uint64_t max);
  std::uint64_t size(std::string_view key);
  std::uint32_t choice(std::string_view key, const std::vector<Choice>& choices);
  // "12.4": two numbers.
  std::pair<std::uint32_t, std::uint32_t> dotted(std::string_view key);
  std::vector<YAML::Node> list(std::string_view key, std::size_t min, std::size_t max);
  YAML::Node node(std::string_view key) const;
  std::string path(std::string_view key) const;
  void reject(std::string_view key, std::string_view what);

 private:
  std::optional<std::string> scalar(std::string_view key);

  YamlErrors& errors_;
  YAML::Node node_;
  std::string path_;
  bool is_usable_ = false;
};

}  // namespace gpu_emulator
