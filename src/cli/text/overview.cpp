#include "cli/text/overview.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kNameWidth = 16;  // of a command's name with the blanks around it

constexpr std::string_view kHead =
    "gpu-platform queues jobs, places them on GPUs and runs them.\n\n"
    "Examples:\n"
    "  gpu-platform status                            show the cluster\n"
    "  gpu-platform run --gpus 1 -- python train.py   run a job and show its output\n"
    "  gpu-platform submit --gpus 8 -- torchrun t.py  submit a job and return at once\n";

struct Section {
  std::string_view title;
  std::array<std::string_view, 9> names;  // first words, in the order of the page
};
constexpr std::array kSections = {
    Section{"Run jobs", {"run", "submit", "notebook", "check", "estimate"}},
    Section{"Follow and change jobs", {"jobs", "queue", "shares"}},
    Section{"See the GPUs",
            {"status", "nodes", "watch", "monitor", "history", "report", "health", "alerts",
             "topology"}},
    Section{"Know what it costs", {"usage", "prices", "budget"}},
    Section{"Connect to a daemon", {"login", "logout", "profile", "token", "whoami", "version"}},
    Section{"Operate the cluster",
            {"drain", "offline", "online", "reset", "reservations", "team", "quota", "audit"}},
    Section{"Run the daemon", {"serve", "doctor", "config", "store", "simulate"}},
};
constexpr std::string_view kRest = "More";

// What a group of commands is for; a group without a row has none.
struct GroupText {
  std::string_view name, summary;
};
constexpr std::array kGroups = {
    GroupText{"jobs", "Show, follow, change and stop jobs"},
    GroupText{"health", "Which GPUs are sick, and why; also"},
    GroupText{"report", "Reports about a time"},
    GroupText{"usage", "What was used, and what it cost; also"},
    GroupText{"prices", "What a GPU costs in one hour"},
    GroupText{"budget", "What teams, users and projects may spend"},
    GroupText{"alerts", "What is wrong now, and who is told"},
    GroupText{"profile", "Daemons that you have logged in to"},
    GroupText{"token", "Tokens, with which other machines act as you"},
    GroupText{"reservations", "GPUs reserved for a time"},
    GroupText{"team", "Teams, their members and coordinators"},
    GroupText{"quota", "Limits and guarantees of teams"},
    GroupText{"audit", "Who did what, and with what outcome"},
    GroupText{"config", "Check and show the configuration"},
};

std::string entry(std::string_view name, std::string_view text) {
  std::string page;
  std::string left = fmt::format("  {:<{}}", name, kNameWidth - 2);
  for (const std::string& line : wrapped(text, kWidth - kNameWidth)) {
    page += fmt::format("{}{}\n", left, line);
    left.assign(kNameWidth, ' ');
  }
  return page;
}

std::string group_text(const Overview& overview, std::string_view group) {
  std::vector<std::string> words;
  for (const Command& command : overview.commands) {
    const std::string_view second = second_word(command.text.name);
    if (first_word(command.text.name) == group && !second.empty()) words.emplace_back(second);
  }
  if (words.empty()) return {};
  const auto* const known = std::ranges::find(kGroups, group, &GroupText::name);
  const std::string list = joined(words, ", ");
  return known == kGroups.end() ? list : fmt::format("{}: {}", known->summary, list);
}

std::string entry_of(const Overview& overview, std::string_view name) {
  for (const OtherCommand& other : overview.others) {
    if (other.name == name) return entry(name, other.summary);
  }
  for (const Command& command : overview.commands) {
    if (first_word(command.text.name) != name) continue;
    const std::string group = group_text(overview, name);
    return entry(name, group.empty() ? std::string(command.text.summary) : group);
  }
  return {};  // a program without this command
}

// The first words that no section has, each once.
std::vector<std::string_view> names_of_rest(const Overview& overview) {
  std::vector<std::string_view> names;
  const auto add = [&](std::string_view name) {
    const bool has_section = std::ranges::any_of(kSections, [&](const Section& section) {
      return std::ranges::find(section.names, name) != section.names.end();
    });
    if (!has_section && std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const Command& command : overview.commands) add(first_word(command.text.name));
  for (const OtherCommand& other : overview.others) add(other.name);
  return names;
}

void append_section(std::string& page, std::string_view title, const Overview& overview,
                    std::span<const std::string_view> names) {
  std::string entries;
  for (const std::string_view name : names) {
    if (!name.empty()) entries += entry_of(overview, name);
  }
  if (!entries.empty()) page += fmt::format("\n{}:\n{}", title, entries);
}

// A name and its summary, which goes on under itself where the line would be longer than a
// terminal.
std::string full_line(std::string_view name, std::string_view summary) {
  constexpr std::size_t kSummaryWidth = 80 - 25;
  std::string lines;
  for (const std::string& line : wrapped(summary, kSummaryWidth)) {
    lines += fmt::format("  {:<23}{}\n", lines.empty() ? name : std::string_view(), line);
  }
  return lines;
}

}  // namespace

std::string_view first_word(std::string_view name) {
  return name.substr(0, name.find(' '));
}

std::string_view second_word(std::string_view name) {
  const std::size_t space = name.find(' ');
  return space == std::string_view::npos ? std::string_view() : name.substr(space + 1);
}

std::string short_overview(const Overview& overview) {
  std::string page(kHead);
  for (const Section& section : kSections) {
    append_section(page, section.title, overview, section.names);
  }
  append_section(page, kRest, overview, names_of_rest(overview));
  return page +
         "\n'gpu-platform COMMAND --help' has the details, 'gpu-platform --help --all' one\n"
         "line for each command, and docs/cli.md the exit codes.\n";
}

std::string full_overview(const Overview& overview) {
  std::string page = fmt::format("{}\nCommands:\n", kHead);
  for (const Command& command : overview.commands) {
    page += full_line(command.text.name, command.text.summary);
  }
  for (const OtherCommand& other : overview.others) page += full_line(other.name, other.summary);
  page += "\nShort forms:\n";
  for (const Alias& alias : overview.aliases) {
    page += full_line(alias.name, fmt::format("the same as {}{}{}", alias.group,
                                              alias.group.empty() ? "" : " ", alias.command));
  }
  return page +
         "\n'gpu-platform COMMAND --help' has the details. docs/cli.md has the exit codes.\n";
}

std::string group_page(std::span<const Command> commands, std::string_view group) {
  std::string page = "Commands:\n";
  for (const Command& command : commands) {
    if (first_word(command.text.name) == group) {
      page += full_line(command.text.name, command.text.summary);
    }
  }
  return page + fmt::format("\n'gpu-platform {} COMMAND --help' has the details.\n", group);
}

}  // namespace gpu_platform::cli
