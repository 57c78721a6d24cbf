#pragma once

#include <span>
#include <string>
#include <string_view>

#include "shims/options/option_table.h"

// The options of all commands as one table of Markdown, for docs/slurm-shims.md. Pure.

namespace gpu_platform::shims {

struct CommandOptions {
  std::string_view command;
  std::span<const Option> options;
};

// "honoured", "ignored, with a warning", …
std::string_view handling_of(const Option& option);

// One line for each option and for each way in which commands handle it, in the order of names.
std::string options_page(std::span<const CommandOptions> commands);

}  // namespace gpu_platform::shims
