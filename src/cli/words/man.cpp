#include "cli/words/man.h"

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/words/known_options.h"

namespace gpu_platform::cli {

namespace {

constexpr std::string_view kProgram = "gpu-platform";

struct Fact {
  std::string_view term;
  std::string_view text;
};

constexpr Fact kEnvironment[] = {
    {"GPU_PLATFORM_SERVER",
     "The address of the daemon or the name of a profile, if --server is not given."},
    {"GPU_PLATFORM_TOKEN", "The token for a server of the network, instead of the profile's."},
    {"GPU_PLATFORM_CA_FILE", "As --ca-file."},
    {"GPU_PLATFORM_CERT, GPU_PLATFORM_KEY", "As --cert and --key."},
    {"NO_COLOR", "If it is set, nothing is coloured."},
    {"CLICOLOR_FORCE",
     "If it is set and not 0, colours are used although the output is not a terminal."}};

constexpr Fact kFiles[] = {
    {"$XDG_CONFIG_HOME/gpu-platform/credentials",
     "The profiles with their tokens, readable only by their owner (else ~/.config/gpu-platform)."},
    {"/run/gpu-platform/gpu-platform.sock", "The socket of the daemon that root has started."},
    {"$XDG_RUNTIME_DIR/gpu-platform.sock", "The socket of your own daemon."}};

constexpr Fact kExitCodes[] = {{"0", "done"},
                               {"1", "failure"},
                               {"2", "an unknown command or option, or a malformed value"},
                               {"3", "not found"},
                               {"4", "refused"},
                               {"5", "no daemon"},
                               {"124", "the time is up"},
                               {"130", "interrupted"}};

void put(Roff& page, std::string_view title, std::span<const Fact> facts) {
  page.section(title);
  for (const Fact& fact : facts) page.item(fact.term, fact.text);
}

std::string_view first_word_of(const Command& command) {
  return command.text.name.substr(0, command.text.name.find(' '));
}

// "-w, --watch[=SECONDS]", "--limit N"
std::string term_of(const KnownOption& option) {
  const bool is_optional = option.value.starts_with('[');
  return fmt::format("{}{}{}", fmt::join(option.names, ", "),
                     option.value.empty() || is_optional ? "" : " ", option.value);
}

void put_command(Roff& page, const Command& command,
                 const ProcessEnvironment& process_environment) {
  page.paragraph(command.text.summary);
  page.lines(fmt::format("{} {} {}\n", kProgram, command.text.name, command.text.synopsis));
  const KnownOptions options = options_of(command, process_environment);
  if (!options.words.empty()) page.item(options.words, options.words_help);
  for (const KnownOption& option : options.all) page.item(term_of(option), option.help);
  page.paragraph("Examples:").lines(command.text.examples);
}

ManPage page_of_word(std::string_view word, std::span<const Command> commands,
                     const ProcessEnvironment& process_environment) {
  std::vector<const Command*> own;
  for (const Command& command : commands) {
    if (first_word_of(command) == word) own.push_back(&command);
  }
  const bool is_group = own.front()->text.name != word;
  Roff page(fmt::format("{}-{}", kProgram, word),
            is_group ? fmt::format("the commands of '{} {}'", kProgram, word)
                     : std::string(own.front()->text.summary));
  if (!is_group) page.section("DESCRIPTION");
  for (const Command* command : own) {
    if (command->text.name != word) page.section(command->text.name);
    put_command(page, *command, process_environment);
  }
  put(page, "EXIT STATUS", kExitCodes);
  return page.section("SEE ALSO").paragraph("gpu-platform(1)").page();
}

ManPage overview_page(std::span<const Command> commands, std::span<const OtherCommand> others) {
  Roff page(kProgram, "queue jobs, place them on GPUs and run them");
  page.section("SYNOPSIS").lines("gpu-platform [--server SERVER] COMMAND [options]\n");
  page.section("COMMANDS");
  for (const Command& command : commands) {
    page.item(
        fmt::format("{} {}", command.text.name, command.text.synopsis),
        fmt::format("{} See gpu-platform-{}(1).", command.text.summary, first_word_of(command)));
  }
  for (const OtherCommand& other : others) {
    page.item(other.name, fmt::format("{}; 'gpu-platform {} --help' has the details", other.summary,
                                      other.name));
  }
  put(page, "ENVIRONMENT", kEnvironment);
  put(page, "FILES", kFiles);
  put(page, "EXIT STATUS", kExitCodes);
  return page.page();
}

}  // namespace

std::vector<ManPage> man_pages(std::span<const OtherCommand> others) {
  const std::span<const Command> commands = all_commands();
  const ProcessEnvironment nowhere;
  std::vector<ManPage> pages = {overview_page(commands, others)};
  std::string_view last;
  for (const Command& command : commands) {
    const std::string_view word = first_word_of(command);
    if (word == last) continue;
    pages.push_back(page_of_word(word, commands, nowhere));
    last = word;
  }
  return pages;
}

}  // namespace gpu_platform::cli
