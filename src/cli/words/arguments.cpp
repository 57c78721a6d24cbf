#include "cli/words/arguments.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/parse.h"
#include "base/suggest.h"
#include "cli/client_names.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

struct Words {
  std::string name;
  std::vector<std::string>* target = nullptr;
  std::size_t least = 0;
  std::size_t most = 0;
  bool is_command = false;
};

// One option, as its command defines it.
struct Described {
  std::string names;  // "--limit,-n"
  std::string value;  // "N"; empty for a flag
  std::string help;
  bool is_rare = false;
};

// ---- how to show it

constexpr std::string_view kNoValue = "true";  // as the parser has it
constexpr std::string_view kEndOfOptions = "--";
constexpr base::Duration kUsualInterval = base::seconds(2);
constexpr std::uint64_t kLongestInterval = 86'400;

base::Result<Output::Format> format_of(const std::string& word, bool has_names) {
  using Format = Output::Format;
  constexpr std::array kWords = {std::pair{"table", Format::kTable},
                                 std::pair{"wide", Format::kWide}, std::pair{"json", Format::kJson},
                                 std::pair{"yaml", Format::kYaml},
                                 std::pair{"name", Format::kName}};
  for (const auto& [name, format] : kWords) {
    if (word == name && (has_names || format != Format::kName)) return format;
  }
  return base::invalid("--output", fmt::format("must be table, wide, json{}, not '{}'",
                                               has_names ? ", yaml or name" : " or yaml", word));
}

base::Result<base::Duration> interval_of(const std::string& text) {
  if (text == kNoValue) return kUsualInterval;
  const auto seconds = base::parse_count(text, 1, kLongestInterval);
  if (!seconds) return base::invalid("--watch", seconds.error().message);
  return base::seconds(static_cast<std::int64_t>(*seconds));
}

constexpr std::size_t kHelpWidth = 80;
constexpr std::size_t kNamesWidth = 26;  // of an option's names with the blanks around them

std::string help_line(std::string_view names, std::string_view help) {
  std::string page = fmt::format("  {:<{}}", names, kNamesWidth - 2);
  const std::string indent(kNamesWidth, ' ');
  bool is_first = page.size() == kNamesWidth && page.back() == ' ';
  if (!is_first) page += '\n';
  for (const std::string& line : wrapped(help, kHelpWidth - kNamesWidth)) {
    page += fmt::format("{}{}\n", is_first ? "" : indent, line);
    is_first = false;
  }
  return page;
}

std::string help_line(const Described& option) {
  std::string names = option.names;
  std::ranges::replace(names, ',', ' ');
  if (!option.value.empty()) names += " " + option.value;
  return help_line(names, option.help);
}

bool has_name(const Described& option, std::string_view name) {
  const std::string names = "," + option.names + ",";
  return names.find(fmt::format(",{},", name)) != std::string::npos;
}

// The parser's words, but for a flag with a value, which it calls an override of the flag.
std::string told(const CLI::ParseError& error) {
  const std::string text = error.what();
  const std::size_t end = text.find(" was given a disallowed flag override");
  return end == std::string::npos ? text : fmt::format("--{} takes no value", text.substr(0, end));
}

}  // namespace

struct Arguments::State {
  CommandText text;
  CLI::App app;
  bool help_wanted = false;
  std::vector<std::unique_ptr<std::string>> values;
  std::vector<std::pair<CLI::Option*, std::optional<std::string>*>> options;
  std::vector<Described> described;  // in the order of definition
  Output* output = nullptr;
  std::optional<std::string> format, watch;
  bool json = false;
  Words words;
  std::string words_help;
  std::vector<std::string_view> common;  // flags; empty: all that are not rare
  bool is_rare = false;                  // of the options that are defined next

  void describe(const std::string& names, const std::string& value, const std::string& help) {
    described.push_back({names, value, help, is_rare});
  }

  // Returns how many words stand behind "--", and are no options: "-12.50" may be a number. A
  // command sees to its own.
  std::size_t plain_words(std::span<const std::string> arguments) const {
    if (words.is_command) return 0;
    const auto mark = std::ranges::find(arguments, kEndOfOptions);
    return mark == arguments.end() ? 0 : static_cast<std::size_t>(arguments.end() - mark - 1);
  }

  bool is_common(const Described& option) const {
    if (common.empty()) return !option.is_rare;
    return std::ranges::any_of(common,
                               [&](std::string_view flag) { return has_name(option, flag); });
  }

  // In the order of the page.
  std::vector<const Described*> common_options() const {
    std::vector<const Described*> found_options;
    for (const Described& option : described) {
      if (is_common(option)) found_options.push_back(&option);
    }
    std::ranges::stable_sort(found_options, {}, [&](const Described* option) {
      return std::ranges::find_if(common,
                                  [&](std::string_view flag) { return has_name(*option, flag); }) -
             common.begin();
    });
    return found_options;
  }

  // Long names of all options, for suggestions.
  std::vector<std::string> long_names() const {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    return names;
  }
};

Arguments::Arguments(const CommandText& text) : state_(std::make_unique<State>()) {
  state_->text = text;
  state_->app.set_help_flag("");
  state_->app.allow_extras(true);
  state_->app.add_flag("-h,--help", state_->help_wanted);
}

Arguments::~Arguments() = default;

Arguments& Arguments::flag(const std::string& names, bool& target, const std::string& help) {
  state_->app.add_flag(names, target)->disable_flag_override();
  state_->describe(names, {}, help);
  return *this;
}

Arguments& Arguments::option(const std::string& names, std::optional<std::string>& target,
                             const std::string& value, const std::string& help) {
  state_->values.push_back(std::make_unique<std::string>());
  CLI::Option* option = state_->app.add_option(names, *state_->values.back());
  option->take_last();
  state_->options.emplace_back(option, &target);
  state_->describe(names, value, help);
  return *this;
}

Arguments& Arguments::many(const std::string& names, std::vector<std::string>& target,
                           const std::string& value, const std::string& help) {
  state_->app.add_option(names, target)->expected(1)->take_all()->allow_extra_args(false);
  state_->describe(names, value, help);
  return *this;
}

Arguments& Arguments::flag_or_value(const std::string& names, std::optional<std::string>& target,
                                    const std::string& value, const std::string& help) {
  state_->values.push_back(std::make_unique<std::string>());
  CLI::Option* option = state_->app.add_flag(names, *state_->values.back());
  state_->options.emplace_back(option->take_last(), &target);
  state_->describe(names, "[=" + value + "]", help);
  return *this;
}

Arguments& Arguments::output(Output& output, NamesPlace names, const char* option_names) {
  output.names = names;
  state_->output = &output;
  const bool has_names = !names.name.empty();
  return option(option_names, state_->format,
                has_names ? "table|wide|json|yaml|name" : "table|wide|json|yaml",
                has_names ? "form of the output; wide cuts nothing, name prints only ids or names"
                          : "form of the output; wide cuts nothing")
      .flag("--json", state_->json, "print JSON");
}

Arguments& Arguments::output_and_watch(Output& output, NamesPlace names) {
  return this->output(output, names)
      .flag_or_value("-w,--watch", state_->watch, "SECONDS",
                     "refresh every SECONDS (default: 2); Ctrl-C ends it");
}

Arguments& Arguments::words(const std::string& name, std::vector<std::string>& target,
                            std::size_t least, std::size_t most, const std::string& help) {
  state_->words = {name, &target, least, most, false};
  state_->words_help = help;
  return *this;
}

Arguments& Arguments::command(const std::string& name, std::vector<std::string>& target,
                              const std::string& help) {
  words(name, target, 0, SIZE_MAX, help);
  state_->words.is_command = true;
  state_->app.prefix_command(true);
  return *this;
}

Arguments& Arguments::common(std::span<const std::string_view> flags) {
  state_->common.assign(flags.begin(), flags.end());
  return *this;
}

Arguments& Arguments::rarely_used() {
  state_->is_rare = true;
  return *this;
}

std::string Arguments::help(bool has_all) const {
  const CommandText& text = state_->text;
  std::string page = fmt::format("{}\n\nExamples:\n{}\nUsage: gpu-platform {} {}\n\n", text.summary,
                                 text.examples, text.name, text.synopsis);
  if (!state_->words.name.empty()) page += help_line(state_->words.name, state_->words_help);
  for (const Described* option : state_->common_options()) page += help_line(*option);
  std::size_t hidden = 0;
  std::string rare;
  for (const Described& option : state_->described) {
    if (state_->is_common(option)) continue;
    ++hidden;
    rare += help_line(option);
  }
  page += help_line("-h --help", "print this page");
  if (hidden == 0) return page;
  if (has_all) return page + "\nMore options:\n" + rare;
  return page + fmt::format("\n{} more options: gpu-platform {} --help --all\n", hidden, text.name);
}

std::string Arguments::list() const {
  std::string lines;
  for (const Described& option : state_->described) {
    lines += fmt::format("{}\t{}\t{}\n", option.names, option.value, option.help);
  }
  lines += "--help,-h\t\tprint this page\n";
  const Words& words = state_->words;
  if (words.name.empty()) return lines;
  return lines + fmt::format("=\t{}\t{}\n", words.name, state_->words_help);
}

std::optional<int> Arguments::parse(std::span<const std::string> arguments, Console& console) {
  const std::string name(state_->text.name);
  if (arguments.size() == 1 && arguments.front() == kListOptions) {
    console.out(list());
    return kOk;
  }
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    state_->app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return usage_error(console, told(error), name);
  }
  if (state_->help_wanted) {
    console.out(help(std::ranges::find(arguments, "--all") != arguments.end()));
    return kOk;
  }
  std::vector<std::string> found;
  const std::vector<std::string> remaining = state_->app.remaining();
  const std::size_t plain =
      remaining.size() - std::min(remaining.size(), state_->plain_words(arguments));
  for (std::size_t i = 0; i < remaining.size(); ++i) {
    const std::string& word = remaining[i];
    if (i + 1 == plain && plain < remaining.size() && word == kEndOfOptions) continue;
    const bool is_plain = i >= plain || (state_->words.is_command && !found.empty());
    if (word.size() > 1 && word.starts_with('-') && !is_plain) {
      const std::vector<std::string> names = state_->long_names();
      const std::vector<std::string_view> candidates(names.begin(), names.end());
      const std::string typed = word.substr(0, word.find('='));
      return usage_error(
          console,
          fmt::format("unknown option '{}'{}", typed, base::did_you_mean(typed, candidates)), name);
    }
    found.push_back(word);
  }
  const Words& words = state_->words;
  if (found.size() > words.most) {
    return usage_error(console, fmt::format("unexpected argument '{}'", found[words.most]), name);
  }
  if (found.size() < words.least) {
    return usage_error(console, fmt::format("{} is missing", words.name), name);
  }
  console.set_options(state_->long_names());
  if (words.target != nullptr) *words.target = std::move(found);
  for (std::size_t i = 0; i < state_->options.size(); ++i) {
    const auto& [option, target] = state_->options[i];
    if (option->count() > 0) *target = *state_->values[i];
  }
  return read_output(console);
}

// What -o, --json and --watch mean together.
std::optional<int> Arguments::read_output(Console& console) {
  Output* output = state_->output;
  if (output == nullptr) return std::nullopt;
  const auto mistake = [&](const base::Error& error) {
    return usage_error(console, fmt::format("{}: {}", error.field, error.message),
                       state_->text.name);
  };
  if (state_->json) output->format = Output::Format::kJson;
  if (state_->format) {
    // "-o=yaml", as people write it for kubectl.
    if (state_->format->starts_with('=')) state_->format->erase(0, 1);
    const auto format = format_of(*state_->format, !output->names.name.empty());
    if (!format) return mistake(format.error());
    if (state_->json && *format != Output::Format::kJson) {
      return mistake({base::ErrorCode::kInvalidArgument,
                      fmt::format("'{}' and --json exclude each other", *state_->format),
                      "--output"});
    }
    output->format = *format;
  }
  if (state_->watch) {
    const auto interval = interval_of(*state_->watch);
    if (!interval) return mistake(interval.error());
    output->watch = *interval;
  }
  return std::nullopt;
}

int usage_error(Console& console, std::string_view message, std::string_view command) {
  console.error(message);
  console.err(fmt::format("see: gpu-platform {}{}--help\n", command, command.empty() ? "" : " "));
  return kUsage;
}

int usage_error(Console& console, const base::Error& mistake, std::string_view command) {
  return usage_error(console, fmt::format("{}: {}", mistake.field, mistake.message), command);
}

}  // namespace gpu_platform::cli
