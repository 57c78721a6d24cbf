#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/cli.h"
#include "cli/commands.h"

// The pages of `gpu-platform --help` and of `gpu-platform GROUP --help`.

namespace gpu_platform::cli {

// A command by another name.
struct Alias {
  std::string_view name;
  std::string_view group;  // of the command; empty: it is one word
  std::string_view command;
};

// Everything that the first page lists.
struct Overview {
  std::span<const Command> commands;
  std::span<const OtherCommand> others;
  std::span<const Alias> aliases;
};

// The first word of a command's name ("jobs"), and the second ("list"; empty without one).
std::string_view first_word(std::string_view name);
std::string_view second_word(std::string_view name);

// The commands by what they are for; the commands of a group share one line. No line is longer than
// 80 columns.
std::string short_overview(const Overview& overview);

// Each command in a line of its own, in the order of the table, and the aliases.
std::string full_overview(const Overview& overview);

// The commands of one group, such as "jobs".
std::string group_page(std::span<const Command> commands, std::string_view group);

}  // namespace gpu_platform::cli
