#include "shims/text/columns.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/text/text.h"
#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

constexpr std::size_t kWidest = 4096;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The number that the text begins with; it is taken away.
std::size_t take_width(std::string_view& text) {
  std::size_t width = 0;
  while (!text.empty() && is_digit(text.front())) {
    width = std::min(width * 10 + static_cast<std::size_t>(text.front() - '0'), kWidest);
    text.remove_prefix(1);
  }
  return width;
}

}  // namespace

base::Result<std::vector<ColumnSpec>> letter_columns(std::string_view format) {
  std::vector<ColumnSpec> columns;
  std::string before;
  while (!format.empty()) {
    const char c = format.front();
    format.remove_prefix(1);
    if (c != '%') {
      before.push_back(c);
      continue;
    }
    if (format.starts_with('%')) {
      before.push_back('%');
      format.remove_prefix(1);
      continue;
    }
    ColumnSpec column;
    column.before = std::exchange(before, {});
    if (format.starts_with('.')) {
      column.is_right = true;
      format.remove_prefix(1);
    }
    column.width = take_width(format);
    if (format.empty() || !is_letter(format.front())) {
      return base::invalid("format", "no letter follows a '%'; '%%' is a percent sign");
    }
    column.letter = format.front();
    format.remove_prefix(1);
    columns.push_back(std::move(column));
  }
  if (!before.empty()) columns.push_back({std::move(before)});
  return columns;
}

base::Result<std::vector<ColumnSpec>> named_columns(std::string_view format, char separator,
                                                    std::size_t width) {
  std::vector<ColumnSpec> columns;
  for (const std::string& item : comma_separated(format)) {
    const std::size_t at = item.find(separator);
    ColumnSpec column;
    column.name = item.substr(0, at);
    column.width = width;
    column.is_right = separator == '%';
    if (at != std::string::npos) {
      std::string_view rest = std::string_view(item).substr(at + 1);
      if (rest.starts_with('-') || rest.starts_with('.')) {
        column.is_right = rest.front() == '.';
        rest.remove_prefix(1);
      }
      column.width = take_width(rest);
      if (separator == ':') column.after = rest;
      if (separator != ':' && (!rest.empty() || column.width == 0)) {
        return base::invalid("format", fmt::format("'{}': a width is a number from 1", item));
      }
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

std::string in_column(const ColumnSpec& column, std::string_view value) {
  std::string text = cli::harmless(value);
  if (column.width == 0) return text;
  // Cut between characters.
  const bool is_cut = cli::display_width(text) > column.width;
  const std::size_t room = column.width - (column.marks_cuts ? 1 : 0);
  while (is_cut && cli::display_width(text) > room) {
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80)
      text.pop_back();
    if (!text.empty()) text.pop_back();
  }
  if (is_cut && column.marks_cuts) text.push_back('+');
  const std::string fill(column.width - std::min(column.width, cli::display_width(text)), ' ');
  return column.is_right ? fill + text : text + fill;
}

std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == '-' || c == '_') continue;
    plain.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c);
  }
  return plain;
}

}  // namespace gpu_platform::shims
