#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "config/configuration.h"

// Reads a YAML file into a Configuration. Only this folder sees the YAML library.

namespace gpu_platform::config {

using Checked = std::expected<Configuration, std::vector<Problem>>;

// Checks a whole document and reports all of its problems, in the order of the file. No exception
// of the YAML library leaves it. It accepts only known keys with allowed values. Files that it
// names (teams_file) are read, relative to `folder`.
Checked parse_configuration(std::string_view yaml, const std::string& folder = ".");

// The same from a file of at most 1 MiB.
Checked read_configuration(const std::string& path);

}  // namespace gpu_platform::config
