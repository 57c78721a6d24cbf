#include "cli/text/table.h"

#include <algorithm>

#include "base/check.h"
#include "cli/text/state_color.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

constexpr std::size_t kGap = 2;
// The width at which a column is left out rather than made narrower, where nothing else is left.
constexpr std::size_t kNarrowest = 3;

void append_cell(std::string& line, std::string_view text, std::string_view color,
                 std::size_t width, Column::Align align) {
  const std::size_t used = std::min(width, display_width(text));
  const std::string padding(width - used, ' ');
  if (align == Column::Align::kRight) line += padding;
  line += colored(text, color);
  if (align == Column::Align::kLeft) line += padding;
}

void trim_end(std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
}

// Returns the width of a line, by the width of each column that is not left out.
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

Table::Widths Table::natural_widths(bool has_titles) const {
  Widths widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t widest = has_titles ? display_width(columns_[i].title) : 0;
    for (const auto& row : rows_) widest = std::max(widest, display_width(row[i]));
    widths.push_back(widest);
  }
  return widths;
}

std::size_t Table::least_width(const Widths& widths, std::size_t column) const {
  return std::min(*widths[column], columns_[column].cut_to.value_or(*widths[column]));
}

// The most expendable column goes, and what stands for it comes.
bool Table::leave_one_out(Widths& widths, const Widths& natural) const {
  std::optional<std::size_t> left_out;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!widths[i] || columns_[i].expendable == 0) continue;
    if (!left_out || columns_[i].expendable > columns_[*left_out].expendable) left_out = i;
  }
  if (!left_out) return false;
  widths[*left_out].reset();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].instead_of == columns_[*left_out].title) widths[i] = natural[i];
  }
  return true;
}

// The widest column that may be narrower loses one place; by force any column.
bool Table::narrow_widest(Widths& widths, bool is_forced) const {
  std::optional<std::size_t> widest;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!widths[i] || *widths[i] <= (is_forced ? kNarrowest : least_width(widths, i))) continue;
    if (!widest || *widths[i] >= *widths[*widest]) widest = i;
  }
  if (!widest) return false;
  --*widths[*widest];
  return true;
}

Table::Widths Table::widths_for(const TableStyle& style) const {
  const std::size_t width = style.width;
  const Widths natural = natural_widths(style.has_titles);
  Widths widths = natural;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].instead_of.empty()) widths[i].reset();
  }
  if (width == 0) return widths;
  const auto least = [&](std::size_t i) { return least_width(widths, i); };
  while (total_of(widths, least) > width && leave_one_out(widths, natural)) continue;
  const auto total = [&] { return total_of(widths, [&](std::size_t i) { return *widths[i]; }); };
  while (total() > width && narrow_widest(widths, false)) continue;
  while (total() > width && narrow_widest(widths, true)) continue;
  for (std::size_t i = widths.size(); i-- > 1 && total() > width;) widths[i].reset();
  if (!widths.empty() && widths[0] && total() > width) widths[0] = width;
  return widths;
}

// A cell is cut only where its column says so: an id or a number that is cut is none.
std::vector<std::string> Table::cell_lines(std::size_t column, std::string_view text,
                                           std::size_t width, const TableStyle& style) const {
  const Column& it = columns_[column];
  if (display_width(text) <= width) return {std::string(text)};
  if (!style.is_one_line && (it.wraps || !it.cut_to)) return wrapped(text, width);
  return {shortened(text, width)};
}

template <class CellAt>
void Table::append_row(std::string& text, const Widths& widths, const TableStyle& style,
                       CellAt&& cell_at) const {
  std::vector<std::vector<std::string>> cells(columns_.size());
  std::size_t height = 1;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!widths[i]) continue;
    cells[i] = cell_lines(i, cell_at(i), *widths[i], style);
    height = std::max(height, cells[i].size());
  }
  for (std::size_t row = 0; row < height; ++row) {
    std::string line;
    bool is_first = true;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!widths[i]) continue;
      if (!is_first) line.append(kGap, ' ');
      is_first = false;
      const bool is_colored = style.has_colors && columns_[i].is_state;
      append_cell(line, row < cells[i].size() ? cells[i][row] : "",
                  is_colored ? color_of_state(cell_at(i)) : "", *widths[i], columns_[i].align);
    }
    trim_end(line);
    text += line;
    text.push_back('\n');
  }
}

std::string Table::render(const TableStyle& style) const {
  const Widths widths = widths_for(style);
  std::string text;
  if (style.has_titles) {
    append_row(text, widths, style,
               [&](std::size_t i) { return std::string_view(columns_[i].title); });
  }
  for (const auto& row : rows_) {
    append_row(text, widths, style, [&](std::size_t i) { return std::string_view(row[i]); });
  }
  return text;
}

}  // namespace gpu_platform::cli
