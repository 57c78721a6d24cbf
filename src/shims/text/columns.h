#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/text/text.h"

// Tables with columns of the caller's choice, as squeue, sinfo and sacct print them. Pure.

namespace gpu_platform::shims {

// A kind of column. `Row` is what a line is about.
template <class Row>
struct Field {
  char letter = 0;        // of "-o", 0: none
  std::string_view name;  // of "-O" and of sacct; compared without case
  std::string_view title;
  std::function<std::string(const Row&)> text;
  int width = 0;  // of sacct's commands; below zero: at the left end
};

// One column, or fixed text between columns.
struct ColumnSpec {
  std::string before;  // text in front of it
  char letter = 0;     // one of these two; neither: text alone
  std::string name;
  std::size_t width = 0;  // 0: as long as the value is
  bool is_right = false;
  std::string after = {};   // text behind it
  bool marks_cuts = false;  // a '+' stands for what was cut off, as in sacct
};

// "%.18i %9P": letters with widths; a dot puts the value at the right end.
base::Result<std::vector<ColumnSpec>> letter_columns(std::string_view format);

// What "%all" stands for: every column whose letter a field has, small letters first, with '|'
// between them. Other formats stay as they are.
template <class Row>
std::string whole_format(std::string_view format, std::span<const Field<Row>> fields) {
  if (format != "%all") return std::string(format);
  std::string letters;
  for (const Field<Row>& field : fields) {
    if (field.letter != 0 && !letters.contains(field.letter)) letters.push_back(field.letter);
  }
  std::ranges::sort(letters, {}, [](char c) { return std::pair(c < 'a', c); });
  std::string all;
  for (const char letter : letters) all += std::string(all.empty() ? "%" : "|%") + letter;
  return all;
}

// "JobID:10,State:.8|": names with widths; `separator` stands before a width (":" for squeue, where
// a dot puts the value at the right end and further text is printed behind it; "%" for sacct, where
// a minus puts the value at the left end). Columns without a width have `width`; 0 for sacct: the
// field's own.
base::Result<std::vector<ColumnSpec>> named_columns(std::string_view format, char separator,
                                                    std::size_t width);

// The value in its column: cut where it is too long, filled where it is too short, made harmless to
// terminals.
std::string in_column(const ColumnSpec& column, std::string_view value);

// "jobid" for "JobID".
std::string plain_name(std::string_view name);

// The columns with their fields: an error for one that is not known.
template <class Row>
struct Bound {
  ColumnSpec column;
  const Field<Row>* field = nullptr;  // null: text alone
};

template <class Row>
base::Result<std::vector<Bound<Row>>> bound(const std::vector<ColumnSpec>& columns,
                                            std::span<const Field<Row>> fields) {
  std::vector<Bound<Row>> result;
  for (const ColumnSpec& column : columns) {
    const bool is_text = column.letter == 0 && column.name.empty();
    const Field<Row>* found = nullptr;
    for (const Field<Row>& field : fields) {
      const bool is_it = column.letter != 0 ? field.letter == column.letter
                                            : plain_name(field.name) == plain_name(column.name);
      if (!is_text && is_it && found == nullptr) found = &field;
    }
    if (!is_text && found == nullptr) {
      const std::string name = column.letter != 0 ? std::string{'%', column.letter} : column.name;
      return base::invalid("format", "the column '" + name + "' is not known here");
    }
    result.push_back({column, found});
    ColumnSpec& own = result.back().column;
    if (own.width == 0 && found != nullptr && found->width != 0) {
      own.width = static_cast<std::size_t>(std::abs(found->width));
      own.is_right = found->width > 0;
    }
  }
  return result;
}

// The table as text, a line for each row.
template <class Row>
std::string rendered(const std::vector<Bound<Row>>& columns, const std::vector<Row>& rows,
                     bool has_header) {
  std::string text;
  const auto add_line = [&](auto&& value_of) {
    for (const Bound<Row>& column : columns) {
      text += column.column.before;
      if (column.field != nullptr) text += in_column(column.column, value_of(*column.field));
      text += column.column.after;
    }
    text.push_back('\n');
  };
  if (has_header) add_line([](const Field<Row>& field) { return std::string(field.title); });
  for (const Row& row : rows) add_line([&](const Field<Row>& field) { return field.text(row); });
  return text;
}

// The same as the commands of the accounts print it: a line below the titles, and a space behind
// each column.
template <class Row>
std::string accounted(const std::vector<Bound<Row>>& columns, const std::vector<Row>& rows,
                      bool has_header) {
  std::string text;
  const auto add_line = [&](bool marks_cuts, auto&& value_of) {
    for (const Bound<Row>& column : columns) {
      ColumnSpec spec = column.column;
      spec.marks_cuts = marks_cuts;
      text += in_column(spec, value_of(column)) + " ";
    }
    text.push_back('\n');
  };
  if (has_header) {
    add_line(false, [](const Bound<Row>& column) { return std::string(column.field->title); });
    add_line(false, [](const Bound<Row>& column) { return std::string(column.column.width, '-'); });
  }
  for (const Row& row : rows) {
    add_line(true, [&](const Bound<Row>& column) { return column.field->text(row); });
  }
  return text;
}

struct Separation {
  std::string delimiter = "|";
  bool is_at_end = false;  // of each line too
};

// The values as they are, for programs.
template <class Row>
std::string parsable(const std::vector<Bound<Row>>& columns, const std::vector<Row>& rows,
                     bool has_header, const Separation& separation) {
  std::string text;
  const auto add_line = [&](auto&& value_of) {
    bool is_first = true;
    for (const Bound<Row>& column : columns) {
      if (!std::exchange(is_first, false)) text += separation.delimiter;
      text += cli::harmless(value_of(*column.field));
    }
    text += separation.is_at_end ? separation.delimiter + "\n" : "\n";
  };
  if (has_header) add_line([](const Field<Row>& field) { return std::string(field.title); });
  for (const Row& row : rows) add_line([&](const Field<Row>& field) { return field.text(row); });
  return text;
}

}  // namespace gpu_platform::shims
