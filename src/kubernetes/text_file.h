#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

// Small text files that a kubeconfig names, and text for messages.

namespace gpu_platform::kubernetes {

// Returns the content of a file of at most 4 MiB. Errors name the file: "/x: No such file or
// directory".
base::Result<std::string> read_text_file(const std::string& path);

// Returns `path` as seen from `folder`. An absolute path stays as it is.
std::string below(const std::string& folder, const std::string& path);

// Returns the text as one printable line of at most `limit` bytes. What is harmful to a terminal
// becomes '?', a line end a space.
std::string printable(std::string_view text, std::size_t limit = 300);

}  // namespace gpu_platform::kubernetes
