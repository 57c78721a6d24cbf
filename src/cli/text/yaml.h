#pragma once

#include <string>

#include "cli/text/json_view.h"

namespace gpu_platform::cli {

// The value as YAML 1.2 in block style, read back by any YAML parser as the same value: a text
// stands in JSON's quotes wherever it could be taken for something else. Ends with a line's end.
std::string yaml_text(const Json& value);

// The same for the entries of a list below a key, each with the "- " before it: for lists that are
// printed as they come.
std::string yaml_entry(const Json& value);

}  // namespace gpu_platform::cli
