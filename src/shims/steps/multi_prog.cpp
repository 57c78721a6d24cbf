#include "shims/steps/multi_prog.h"

#include <optional>

#include <fmt/format.h>

#include "client/script_words.h"
#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

struct Range {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
};

// "0,2-4".
base::Result<std::vector<Range>> ranges_of(const std::string& text) {
  std::vector<Range> ranges;
  for (const std::string& part : comma_separated(text)) {
    const std::size_t dash = part.find('-');
    Range range;
    TRY_ASSIGN(range.first, parse_number(part.substr(0, dash), 0));
    range.last = range.first;
    if (dash != std::string::npos) {
      TRY_ASSIGN(range.last, parse_number(part.substr(dash + 1), 0));
    }
    if (range.last < range.first)
      return base::invalid({}, fmt::format("'{}' begins behind its end", part));
    ranges.push_back(range);
  }
  return ranges;
}

std::string replaced(std::string_view word, std::uint32_t task, std::uint32_t offset) {
  std::string result;
  for (std::size_t at = 0; at < word.size(); ++at) {
    const char next = word[at] == '%' && at + 1 < word.size() ? word[at + 1] : '\0';
    if (next != 't' && next != 'o') {
      result.push_back(word[at]);
      continue;
    }
    result += fmt::format("{}", next == 't' ? task : offset);
    ++at;
  }
  return result;
}

class Programs {
 public:
  Programs(std::uint32_t tasks, const std::vector<std::string>& arguments)
      : programs_(tasks), arguments_(arguments) {}

  base::Status add(std::string_view line) {
    TRY_ASSIGN(const auto words, client::shell_words(line));
    if (words.empty()) return {};
    if (words.size() == 1)
      return base::invalid({}, fmt::format("no program behind '{}'", words.front()));
    if (words.front() == "*") {
      std::uint32_t offset = 0;
      for (std::uint32_t task = 0; task < programs_.size(); ++task)
        if (programs_[task].empty()) put(task, offset++, words);
      return {};
    }
    TRY_ASSIGN(const auto ranges, ranges_of(words.front()));
    std::uint32_t offset = 0;
    for (const Range& range : ranges) {
      // Tasks that the step does not have are no mistake: one file serves steps of several sizes.
      for (std::uint32_t task = range.first; task <= range.last && task < programs_.size();
           ++task) {
        if (!programs_[task].empty())
          return base::invalid({}, fmt::format("task {} has a program already", task));
        put(task, offset++, words);
      }
    }
    return {};
  }

  base::Result<std::vector<std::vector<std::string>>> all() && {
    for (std::size_t task = 0; task < programs_.size(); ++task) {
      if (programs_[task].empty())
        return base::invalid({}, fmt::format("no program is given for task {}", task));
    }
    return std::move(programs_);
  }

 private:
  void put(std::uint32_t task, std::uint32_t offset, const std::vector<std::string>& words) {
    for (std::size_t i = 1; i < words.size(); ++i)
      programs_[task].push_back(replaced(words[i], task, offset));
    programs_[task].insert(programs_[task].end(), arguments_.begin(), arguments_.end());
  }

  std::vector<std::vector<std::string>> programs_;
  const std::vector<std::string>& arguments_;
};

}  // namespace

base::Result<std::vector<std::vector<std::string>>> programs_of_tasks(
    std::string_view file, std::uint32_t tasks, const std::vector<std::string>& arguments) {
  Programs programs(tasks, arguments);
  std::string line;
  std::uint32_t number = 0;
  std::uint32_t first = 1;
  while (!file.empty()) {
    const std::size_t end = file.find('\n');
    const std::string_view part = file.substr(0, end);
    file.remove_prefix(end == std::string_view::npos ? file.size() : end + 1);
    ++number;
    if (line.empty()) first = number;
    line += part;
    if (line.ends_with('\\') && !file.empty()) {
      line.back() = ' ';
      continue;
    }
    if (const auto added = programs.add(line); !added)
      return base::invalid({}, fmt::format("line {}: {}", first, added.error().message));
    line.clear();
  }
  return std::move(programs).all();
}

}  // namespace gpu_platform::shims
