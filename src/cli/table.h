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
  // The least width it may be cut to on a narrow terminal; absent: never cut.
  std::optional<std::size_t> cut_to = std::nullopt;
  // Where cutting is not enough, columns are left out, those with the highest number first; 0:
  // never.
  int expendable = 0;
};

// Rows of text in columns that line up.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  // One cell for each column; an empty cell shows as "-". Cells are made harmless here.
  void add(std::vector<std::string> cells);

  bool empty() const { return rows_.empty(); }

  // All of it with a title line, every line ended. `width` is the terminal's, 0 where there is
  // none: then nothing is cut.
  std::string render(std::size_t width) const;

 private:
  // The width of each column; a column without one is left out.
  using Widths = std::vector<std::optional<std::size_t>>;
  Widths widths_for(std::size_t width) const;
  Widths natural_widths() const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace gpu_platform::cli
