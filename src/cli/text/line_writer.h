#pragma once

#include <string>
#include <string_view>

#include "cli/client_names.h"

namespace gpu_platform::cli {

// Writes bytes to standard output in whole lines, with a prefix before each, so that the lines of
// several jobs do not mix. A very long line is broken.
class LineWriter {
 public:
  LineWriter(Console& console, std::string prefix)
      : console_(console), prefix_(std::move(prefix)) {}

  // `stamp` stands before the prefix of each line that these bytes complete.
  void write(std::string_view bytes, std::string_view stamp);
  // Writes a last line that has no end, and ends it.
  void finish(std::string_view stamp);

 private:
  void write_line(std::string_view line, std::string_view stamp);

  Console& console_;
  std::string prefix_;
  std::string begun_;  // a line whose end has not come
};

}  // namespace gpu_platform::cli
