#include "logging/line.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace gpu_platform::logging {

namespace {

constexpr std::string_view kCut = "…";

std::string escaped_byte(char byte) {
  return fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
}

std::string escaped(char32_t c, std::string_view bytes) {
  if (c == U'\n') return "\\n";
  if (c == U'\r') return "\\r";
  if (c == U'\t') return "\\t";
  // One byte at a time: what is no UTF-8 is cut into bytes.
  if (bytes.size() == 1) return escaped_byte(bytes.front());
  return fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c));
}

std::string make_harmless(std::string_view text, std::size_t most, bool quotes_too) {
  std::string line;
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t c = base::take_character(text);
    const std::string_view bytes = before.substr(0, before.size() - text.size());
    std::string shown(bytes);
    if (base::is_harmful(c)) shown = escaped(c, bytes);
    if (quotes_too && (c == U'"' || c == U'\\')) shown.insert(shown.begin(), '\\');
    if (line.size() + shown.size() > most) return line.append(kCut);
    line += shown;
  }
  return line;
}

}  // namespace

std::string one_line(std::string_view text, std::size_t most) {
  return make_harmless(text, most, false);
}

std::string quoted(std::string_view text, std::size_t most) {
  return '"' + make_harmless(text, most, true) + '"';
}

}  // namespace gpu_platform::logging
