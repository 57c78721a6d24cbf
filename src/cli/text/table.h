#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpu_platform::cli {

struct Column {
  enum class Align : std::uint8_t { kLeft, kRight };

  std::string title;
  Align align = Align::kLeft;
  // The least width that a narrow terminal leaves it; absent: it keeps its width. What does not fit
  // is cut, or wrapped.
  std::optional<std::size_t> cut_to = std::nullopt;
  // If narrower columns are not enough, columns are left out, those with the highest number
  // first; 0: never.
  int expendable = 0;
  // Text that does not fit goes on in further lines.
  bool wraps = false;
  // Its cells are states, which have colors.
  bool is_state = false;
  // The title of a wider column; this one is shown only if that one is left out.
  std::string instead_of = {};
};

// What a table is printed on.
struct TableStyle {
  std::size_t width = 0;  // of the terminal; 0: there is none, and every line is as long as it is
  bool has_colors = false;
  bool has_titles = true;
  bool is_one_line = false;  // one line for each row: what would be wrapped is cut
};

// Rows of text in columns that line up. On a terminal no line is wider than it.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // One cell for each column; an empty cell shows as "-". Cells are made harmless here.
  void add(std::vector<std::string> cells);

  bool empty() const { return rows_.empty(); }

  // All of it with a title line, every line ended.
  std::string render(const TableStyle& style) const;

 private:
  // The width of each column; a column without one is left out.
  using Widths = std::vector<std::optional<std::size_t>>;
  Widths widths_for(const TableStyle& style) const;
  Widths natural_widths(bool has_titles) const;
  std::size_t least_width(const Widths& widths, std::size_t column) const;
  bool leave_one_out(Widths& widths, const Widths& natural) const;
  bool narrow_widest(Widths& widths, bool is_forced) const;
  std::vector<std::string> cell_lines(std::size_t column, std::string_view text, std::size_t width,
                                      const TableStyle& style) const;
  template <class CellAt>
  void append_row(std::string& text, const Widths& widths, const TableStyle& style,
                  CellAt&& cell_at) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace gpu_platform::cli
