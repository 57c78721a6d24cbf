#include "client/script_words.h"

#include <fmt/format.h>

namespace gpu_platform::client {

namespace {

constexpr std::string_view kInterpreterMark = "#!";
constexpr std::string_view kScriptBlanks = " \t\r";

bool is_script_blank(char c) {
  return kScriptBlanks.find(c) != std::string_view::npos;
}

// Takes the next character or quoted part of a word.
base::Status take_part(std::string_view& rest, std::string& word) {
  const char c = rest.front();
  rest.remove_prefix(1);
  if (c == '\\' && !rest.empty()) {
    word.push_back(rest.front());
    rest.remove_prefix(1);
  } else if (c == '\'' || c == '"') {
    const std::size_t end = rest.find(c);
    if (end == std::string_view::npos) {
      return base::invalid({}, fmt::format("a quote {} is not closed", c));
    }
    word += rest.substr(0, end);
    rest.remove_prefix(end + 1);
  } else {
    word.push_back(c);
  }
  return {};
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kScriptBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kScriptBlanks) - begin + 1);
}

// The mark that the line begins with, or nothing.
std::string_view mark_of(std::string_view line, std::initializer_list<std::string_view> marks) {
  for (const std::string_view mark : marks) {
    if (line.starts_with(mark) && line.size() > mark.size() && is_script_blank(line[mark.size()])) {
      return mark;
    }
  }
  return {};
}

}  // namespace

base::Result<std::vector<std::string>> shell_words(std::string_view line) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(kScriptBlanks);
    if (begin == std::string_view::npos || line[begin] == '#') return words;
    line.remove_prefix(begin);
    std::string word;
    while (!line.empty() && !is_script_blank(line.front())) TRY(take_part(line, word));
    words.push_back(std::move(word));
  }
}

base::Result<std::vector<OptionLine>> option_lines(std::string_view script,
                                                   std::initializer_list<std::string_view> marks) {
  std::vector<OptionLine> lines;
  for (std::size_t number = 1; !script.empty(); ++number) {
    const std::size_t end = script.find('\n');
    const std::string_view line = script.substr(0, end);
    script.remove_prefix(end == std::string_view::npos ? script.size() : end + 1);
    const std::size_t first = line.find_first_not_of(kScriptBlanks);
    if (first == std::string_view::npos) continue;
    if (line[first] != '#') break;
    const std::string_view mark = mark_of(line, marks);
    if (mark.empty()) continue;
    auto words = shell_words(line.substr(mark.size()));
    if (!words) return base::invalid(fmt::format("line {}", number), words.error().message);
    if (!words->empty()) lines.push_back({number, mark, *std::move(words)});
  }
  return lines;
}

std::vector<std::string> interpreter_of(std::string_view script) {
  if (!script.starts_with(kInterpreterMark)) return {};
  std::string_view line = script.substr(0, script.find('\n'));
  line = trimmed(line.substr(kInterpreterMark.size()));
  if (line.empty()) return {};
  const std::size_t blank = line.find_first_of(kScriptBlanks);
  std::vector<std::string> words{std::string(line.substr(0, blank))};
  if (blank != std::string_view::npos) words.emplace_back(trimmed(line.substr(blank)));
  return words;
}

}  // namespace gpu_platform::client
