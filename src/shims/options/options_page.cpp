#include "shims/options/options_page.h"

#include <map>
#include <tuple>

#include <fmt/format.h>

#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

std::string_view handling_of(const Option& option) {
  switch (option.rule) {
    case Rule::kHonoured:
      return "honoured";
    case Rule::kAccepted:
      return "accepted";
    case Rule::kIgnored:
      return "ignored, with a warning";
    case Rule::kRefused:
      return "refused";
  }
  return {};
}

namespace {

std::string page_note_of(const Option& option) {
  if (option.note.empty()) return option.rule == Rule::kAccepted ? "changes nothing" : "";
  std::string text;
  for (const char c : option.note) {
    if (c == '|') text += '\\';
    text += c;
  }
  return text;
}

std::string spelling_of(const Option& option) {
  if (option.letter == 0) return fmt::format("`--{}`", option.name);
  return fmt::format("`-{}`, `--{}`", option.letter, option.name);
}

}  // namespace

std::string options_page(std::span<const CommandOptions> commands) {
  // The key is the name without case, the name, the spelling, the handling and the note; the value
  // says which commands have it.
  using Key = std::tuple<std::string, std::string, std::string, std::string_view, std::string>;
  std::map<Key, std::string> rows;
  for (const auto& [command, options] : commands) {
    for (const Option& option : options) {
      const std::string name(option.name);
      std::string& who = rows[{lower_case(name), name, spelling_of(option), handling_of(option),
                               page_note_of(option)}];
      who += fmt::format("{}`{}`", who.empty() ? "" : " ", command);
    }
  }
  std::string page = "| option | commands | is | what is done |\n| --- | --- | --- | --- |\n";
  for (const auto& [key, who] : rows) {
    const auto& [lower, name, spelling, handling, note] = key;
    page += fmt::format("| {} | {} | {} | {} |\n", spelling, who, handling, note);
  }
  return page;
}

}  // namespace gpu_platform::shims
