#include "shims/text/file_pattern.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace gpu_platform::shims {

namespace {

constexpr std::size_t kWidestNumber = 10;  // as Slurm has it

std::optional<std::string> replacement(char symbol, const PatternValues& values) {
  switch (symbol) {
    case 'J':
      if (values.is_step) return fmt::format("{}.{}", values.job, values.step);
      [[fallthrough]];
    case 'j':
      return values.job;
    case 'A':
      return values.array.empty() ? values.job : values.array;
    case 'a':
      return values.index.empty() ? std::nullopt : std::optional(values.index);
    case 'x':
      return values.name;
    case 'u':
      return values.user;
    case 'N':
      return values.node;
    case 't':
      return fmt::format("{}", values.task);
    case 's':
      return fmt::format("{}", values.step);
    case 'n':
      return fmt::format("{}", values.node_number);
    case 'r':
      return fmt::format("{}", values.restarts);
    case '%':
      return "%";
    default:
      return std::nullopt;
  }
}

// "%5j" cut into its width and symbol, from behind the percent sign on.
struct Symbol {
  std::size_t width = 0;
  char letter = '\0';  // NUL at the end of the pattern
};
Symbol take_symbol(std::string_view& rest) {
  Symbol symbol;
  for (; !rest.empty() && rest.front() >= '0' && rest.front() <= '9'; rest.remove_prefix(1)) {
    symbol.width =
        std::min(symbol.width * 10 + static_cast<std::size_t>(rest.front() - '0'), kWidestNumber);
  }
  if (rest.empty()) return symbol;
  symbol.letter = rest.front();
  rest.remove_prefix(1);
  return symbol;
}

std::string without_backslashes(std::string_view pattern) {
  std::string result;
  std::ranges::copy_if(pattern, std::back_inserter(result), [](char c) { return c != '\\'; });
  return result;
}

std::optional<std::string> platform_symbol(Symbol symbol, bool is_one_task, model::PatternOf of) {
  std::string zero(std::max<std::size_t>(symbol.width, 1), '0');
  switch (symbol.letter) {
    case 'n':
    case 's':
      return zero;  // node and step within the job
    case 't':
      return is_one_task ? std::optional(zero) : std::nullopt;
    case '%':
      return "%%";
    case 'A':
      if (of == model::PatternOf::kArray) {
        return symbol.width == 0 ? std::optional<std::string>("%A") : std::nullopt;
      }
      [[fallthrough]];
    case 'j':
    case 'J':
      return symbol.width == 0 ? std::optional<std::string>("%j") : std::nullopt;
    case 'a':
      if (of != model::PatternOf::kArray) return std::nullopt;
      [[fallthrough]];
    case 'x':
    case 'u':
    case 'N':
      return symbol.width == 0 ? std::optional(std::string{'%', symbol.letter}) : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

base::Result<std::string> expanded(std::string_view pattern, const PatternValues& values) {
  if (pattern.contains('\\')) return without_backslashes(pattern);
  std::string result;
  for (std::string_view rest = pattern; !rest.empty();) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c != '%') {
      result.push_back(c);
      continue;
    }
    const Symbol symbol = take_symbol(rest);
    const auto text = replacement(symbol.letter, values);
    if (!text) {
      return base::invalid(
          {},
          fmt::format(
              "'{}' has a symbol that is not known: allowed are %j %A %a %x %u %N %n %t %s %r %%",
              pattern));
    }
    const bool is_number = text->find_first_not_of("0123456789") == std::string::npos;
    if (is_number && text->size() < symbol.width) result.append(symbol.width - text->size(), '0');
    result += *text;
  }
  return result;
}

std::optional<std::string> platform_pattern(std::string_view pattern, bool is_one_task,
                                            model::PatternOf of) {
  const bool is_replaced = !pattern.contains('\\');
  const std::string plain = without_backslashes(pattern);
  std::string result;
  for (std::string_view rest = plain; !rest.empty();) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c != '%') {
      result.push_back(c);
      continue;
    }
    const auto text = is_replaced ? platform_symbol(take_symbol(rest), is_one_task, of) : "%%";
    if (!text) return std::nullopt;
    result += *text;
  }
  return result;
}

}  // namespace gpu_platform::shims
