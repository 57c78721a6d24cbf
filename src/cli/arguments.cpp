#include "cli/arguments.h"

#include <algorithm>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/suggest.h"
#include "cli/exit_code.h"

namespace gpu_platform::cli {

namespace {

struct Words {
  std::string name;
  std::vector<std::string>* target = nullptr;
  std::size_t least = 0;
  std::size_t most = 0;
};

}  // namespace

struct Arguments::State {
  CommandText text;
  CLI::App app;
  bool help_wanted = false;
  std::vector<std::unique_ptr<std::string>> values;
  std::vector<std::pair<CLI::Option*, std::optional<std::string>*>> options;
  std::vector<std::string> option_help;  // lines, in the order of definition
  Words words;

  void describe(const std::string& names, const std::string& value, const std::string& help) {
    std::string left = "  " + names;
    std::ranges::replace(left, ',', ' ');
    if (!value.empty()) left += " " + value;
    option_help.push_back(fmt::format("{:<26}{}{}\n", left, left.size() >= 26 ? "  " : "", help));
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
  state_->app.add_flag(names, target);
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

Arguments& Arguments::words(const std::string& name, std::vector<std::string>& target,
                            std::size_t least, std::size_t most, const std::string& help) {
  state_->words = {name, &target, least, most};
  state_->option_help.insert(state_->option_help.begin(), fmt::format("  {:<24}{}\n", name, help));
  return *this;
}

std::string Arguments::help() const {
  const CommandText& text = state_->text;
  std::string page = fmt::format("{}\n\nExamples:\n{}\nUsage: gpu-platform {} {}\n\n", text.summary,
                                 text.examples, text.name, text.synopsis);
  for (const std::string& line : state_->option_help) page += line;
  return page + fmt::format("  {:<24}{}\n", "-h --help", "this page");
}

std::optional<int> Arguments::parse(std::span<const std::string> arguments, Console& console) {
  const std::string name(state_->text.name);
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    state_->app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return usage_error(console, error.what(), name);
  }
  if (state_->help_wanted) {
    console.out(help());
    return kOk;
  }
  std::vector<std::string> found;
  for (const std::string& word : state_->app.remaining()) {
    if (word.size() > 1 && word.starts_with('-')) {
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
  if (words.target != nullptr) *words.target = std::move(found);
  for (std::size_t i = 0; i < state_->options.size(); ++i) {
    const auto& [option, target] = state_->options[i];
    if (option->count() > 0) *target = *state_->values[i];
  }
  return std::nullopt;
}

int usage_error(Console& console, std::string_view message, std::string_view command) {
  console.error(message);
  console.err(fmt::format("see: gpu-platform {}{}--help\n", command, command.empty() ? "" : " "));
  return kUsage;
}

}  // namespace gpu_platform::cli
