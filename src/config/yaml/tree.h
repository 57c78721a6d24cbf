#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "config/configuration.h"

// YAML documents as trees of texts, for readers that define the type of each value themselves.

namespace gpu_platform::config {

struct YamlTree {
  enum class Kind : std::uint8_t { kNull, kPlain, kQuoted, kList, kMap };
  Kind kind = Kind::kNull;
  std::string key;                // of a value of a kMap
  std::string text;               // of kPlain and kQuoted
  std::vector<YamlTree> list;     // of kList
  std::vector<YamlTree> entries;  // of kMap, each key once
  int line = 0;                   // from 1
};

// Returns all documents of a text of at most 1 MiB; empty documents are left out. Keys that are no
// texts, repeated keys, and trees of more than 32 levels or of more than 100,000 values (as aliases
// make them), are refused. No exception of the YAML library leaves it.
std::expected<std::vector<YamlTree>, Problem> read_trees(std::string_view yaml);

}  // namespace gpu_platform::config
