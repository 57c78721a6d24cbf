#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

#include <yaml-cpp/yaml.h>

#include "base/result.h"
#include "config/configuration.h"

// Functions that make of bytes the one document in them. No exception of the YAML library leaves
// these.

namespace gpu_platform::config {

inline constexpr std::size_t kLargestFile = std::size_t{1} << 20;

// Returns the text of a file. A file that is too large is cut at a size that parse_document()
// refuses.
base::Result<std::string> read_text(const std::string& path);

// Returns null if the text has no document.
std::expected<YAML::Node, Problem> parse_document(std::string_view yaml);

// Returns the part of a key that a message may show: a file is the site's own, but it may be any
// file by mistake.
std::string printable(std::string_view text);

std::string_view kind_of(const YAML::Node& node);  // "a list"

}  // namespace gpu_platform::config
