#include "cli/text/csv.h"

#include "base/utf8.h"

namespace gpu_platform::cli {

std::string csv_cell(std::string_view text) {
  const bool is_formula =
      !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  const std::string guarded = (is_formula ? "'" : "") + base::without_harmful(text, "\t\r\n");
  if (guarded.find_first_of(",\"\r\n") == std::string::npos) return guarded;
  std::string quoted = "\"";
  for (const char c : guarded) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace gpu_platform::cli
