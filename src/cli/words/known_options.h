#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"

namespace gpu_platform::cli {

// The options of a command, as it defines them itself (kListOptions), for completion and man pages.
struct KnownOption {
  std::vector<std::string> names;
  std::string value;  // empty: a flag
  std::string help;
};
struct KnownOptions {
  std::vector<KnownOption> all;
  std::string words;  // the name of the words that are no options
  std::string words_help;

  const KnownOption* find(std::string_view name) const;
};

// Empty for a command that lists none.
KnownOptions options_of(const Command& command, const ProcessEnvironment& process_environment);

// "a,b" as a, b.
std::vector<std::string> parts_between(std::string_view text, char at);

}  // namespace gpu_platform::cli
