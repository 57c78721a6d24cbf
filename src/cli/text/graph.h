#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/client_names.h"

// Values over time as pictures of characters: a line of bars, or a graph of several lines with its
// axes. Unicode's blocks where the terminal's locale has them, else ASCII.

namespace gpu_platform::cli {

// A value from one moment to the next.
struct GraphPoint {
  base::Instant from;
  base::Instant to;
  double value = 0;
};

struct GraphScale {
  base::Instant from;
  base::Instant to;
  double least = 0;
  double most = 100;
};

struct GraphStyle {
  std::size_t width = 80;  // columns of all of it
  std::size_t height = 6;  // lines of the graph alone
  bool is_ascii = false;
};

// Whether the locale of the process has UTF-8, by LC_ALL, LC_CTYPE and LANG.
bool has_utf8(const ProcessEnvironment& process_environment);

// One line of bars, `columns` wide. The mean of a column's values is its bar; a column without
// values is a space, and a value of 0 is a bar.
std::string sparkline(std::span<const GraphPoint> points, const GraphScale& scale,
                      std::size_t columns, bool is_ascii);

// Lines of a graph, ended: the values at the left, the local times below. No line is wider than the
// style's width, if that is 30 or more.
std::string graph(std::span<const GraphPoint> points, const GraphScale& scale,
                  const std::function<std::string(double)>& value_text, const GraphStyle& style);

}  // namespace gpu_platform::cli
