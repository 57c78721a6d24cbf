#include "shims/file_pattern.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace gpu_platform::shims {

namespace {

constexpr std::size_t kWidest = 10;  // as Slurm has it

std::optional<std::string> replacement(char symbol, const PatternValues& values) {
  switch (symbol) {
    case 'j':
    case 'J':
    case 'A':
      return values.job;
    case 'x':
      return values.name;
    case 'u':
      return values.user;
    case 'N':
      return values.node;
    case 't':
      return fmt::format("{}", values.task);
    case 'n':
    case 's':
      return "0";  // node and step within the job
    case 'r':
      return fmt::format("{}", values.restarts);
    case '%':
      return "%";
    default:
      return std::nullopt;
  }
}

}  // namespace

base::Result<std::string> expanded(std::string_view pattern, const PatternValues& values) {
  std::string result;
  if (pattern.find('\\') != std::string_view::npos) {
    std::ranges::copy_if(pattern, std::back_inserter(result), [](char c) { return c != '\\'; });
    return result;
  }
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      result.push_back(pattern[i]);
      continue;
    }
    std::size_t width = 0;
    for (++i; i < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9'; ++i) {
      width = std::min(width * 10 + static_cast<std::size_t>(pattern[i] - '0'), kWidest);
    }
    const auto text = i < pattern.size() ? replacement(pattern[i], values) : std::nullopt;
    if (!text) {
      return base::invalid(
          {}, fmt::format(
                  "'{}' has a symbol that is not known: allowed are %j %A %x %u %N %n %t %s %r %%",
                  pattern));
    }
    const bool is_number = text->find_first_not_of("0123456789") == std::string::npos;
    if (is_number && text->size() < width) result.append(width - text->size(), '0');
    result += *text;
  }
  return result;
}

}  // namespace gpu_platform::shims
