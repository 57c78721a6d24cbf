#include "cli/table.h"

#include <algorithm>

#include "base/check.h"
#include "cli/text.h"

namespace gpu_platform::cli {

namespace {

constexpr std::size_t kGap = 2;

void append_cell(std::string& line, std::string_view text, std::size_t width, Column::Align align) {
  const std::size_t used = std::min(width, display_width(text));
  const std::string padding(width - used, ' ');
  if (align == Column::Align::kRight) line += padding;
  line += text;
  if (align == Column::Align::kLeft) line += padding;
}

void trim_end(std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
}

// Of a line, by the width of each column that is not left out.
template <class WidthOf>
std::size_t total_of(const std::vector<std::optional<std::size_t>>& widths, WidthOf&& width_of) {
  std::size_t total = 0;
  std::size_t columns = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (!widths[i]) continue;
    total += width_of(i);
    ++columns;
  }
  return total + (columns > 0 ? (columns - 1) * kGap : 0);
}

}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<std::string> cells) {
  CHECK(cells.size() == columns_.size());
  for (std::string& cell : cells) cell = cell.empty() ? "-" : harmless(cell);
  rows_.push_back(std::move(cells));
}

Table::Widths Table::natural_widths() const {
  Widths widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t widest = display_width(columns_[i].title);
    for (const auto& row : rows_) widest = std::max(widest, display_width(row[i]));
    widths.push_back(widest);
  }
  return widths;
}

// On a terminal the widest column that may be cut gives way first.
Table::Widths Table::widths_for(std::size_t width) const {
  Widths widths = natural_widths();
  if (width == 0) return widths;
  const auto least = [&](std::size_t i) {
    return std::min(*widths[i], columns_[i].cut_to.value_or(*widths[i]));
  };
  while (total_of(widths, least) > width) {
    std::optional<std::size_t> left_out;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!widths[i] || columns_[i].expendable == 0) continue;
      if (!left_out || columns_[i].expendable > columns_[*left_out].expendable) left_out = i;
    }
    if (!left_out) break;
    widths[*left_out].reset();
  }
  std::size_t total = total_of(widths, [&](std::size_t i) { return *widths[i]; });
  for (; total > width; --total) {
    std::optional<std::size_t> widest;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!widths[i] || least(i) == *widths[i]) continue;
      if (!widest || *widths[i] >= *widths[*widest]) widest = i;
    }
    if (!widest) break;
    --*widths[*widest];
  }
  return widths;
}

std::string Table::render(std::size_t width) const {
  const Widths widths = widths_for(width);
  const auto line_of = [&](const auto& cell_at) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!widths[i]) continue;
      if (!line.empty()) line.append(kGap, ' ');
      append_cell(line, shortened(cell_at(i), *widths[i]), *widths[i], columns_[i].align);
    }
    trim_end(line);
    line.push_back('\n');
    return line;
  };
  std::string text = line_of([&](std::size_t i) { return std::string_view(columns_[i].title); });
  for (const auto& row : rows_) {
    text += line_of([&](std::size_t i) { return std::string_view(row[i]); });
  }
  return text;
}

}  // namespace gpu_platform::cli
