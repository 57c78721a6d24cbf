#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/client_names.h"

namespace gpu_platform::cli {

// Reading a token: never as a word of the command line, which process lists show.
struct TokenSource {
  std::optional<std::string> file;
  bool from_stdin = false;
};

// From the file, from stdin up to its end, or from a person at the terminal that stdin is, whose
// typing is not shown. What surrounds the token (blanks, a line's end) is dropped. Nothing: the
// person ended it with Ctrl-C. kInvalidArgument names what to give instead.
base::Result<std::optional<std::string>> read_token(const TokenSource& source, Console& console,
                                                    std::string_view prompt);

}  // namespace gpu_platform::cli
