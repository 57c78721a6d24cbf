#include "cli/text/roff.h"

#include <cstdint>

#include <fmt/format.h>

#include "base/letters.h"

namespace gpu_platform::cli {

namespace {

// The number of the character that begins the text, and its bytes; bad bytes count as one of '?'.
std::uint32_t take_character(std::string_view text, std::size_t& bytes) {
  const auto first = static_cast<unsigned char>(text.front());
  bytes = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (bytes > text.size() || (first >= 0x80 && first < 0xc2)) {
    bytes = 1;
    return '?';
  }
  std::uint32_t number = bytes == 1 ? first : first & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    number = number << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  }
  return number;
}

// One line of it, as text.
std::string escaped(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out = "\\&";
  while (!text.empty()) {
    std::size_t bytes = 0;
    const std::uint32_t character = take_character(text, bytes);
    if (character >= 0x80) {
      out += fmt::format("\\[u{:04X}]", character);
    } else if (character == '\\') {
      out += "\\e";
    } else if (character == '-') {
      out += "\\-";
    } else if (character == '\'') {
      out += "\\(aq";
    } else if (character == '^') {
      out += "\\(ha";
    } else if (character == '~') {
      out += "\\(ti";
    } else if (character == '`') {
      out += "\\(ga";
    } else {
      out.push_back(character < ' ' ? ' ' : static_cast<char>(character));
    }
    text.remove_prefix(bytes);
  }
  return out;
}

// In quotes, as an argument of a macro.
std::string as_argument(std::string_view text) {
  std::string out = "\"";
  for (const char c : escaped(text)) out += c == '"' ? std::string("\\(dq") : std::string(1, c);
  return out + '"';
}

}  // namespace

Roff::Roff(std::string_view name, std::string_view summary) : name_(name) {
  text_ = fmt::format(".TH {} 1 \"\" {}\n.SH NAME\n{} \\- {}\n", as_argument(base::to_upper(name)),
                      as_argument("gpu-platform " GP_VERSION), escaped(name), escaped(summary));
}

Roff& Roff::section(std::string_view title) {
  text_ += fmt::format(".SH {}\n", as_argument(title));
  return *this;
}

Roff& Roff::paragraph(std::string_view text) {
  text_ += fmt::format(".PP\n{}\n", escaped(text));
  return *this;
}

Roff& Roff::item(std::string_view term, std::string_view text) {
  text_ += fmt::format(".TP\n.B {}\n{}\n", as_argument(term), text.empty() ? "\\&" : escaped(text));
  return *this;
}

Roff& Roff::lines(std::string_view text) {
  text_ += ".PP\n.nf\n";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    text_ += escaped(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  text_ += ".fi\n";
  return *this;
}

}  // namespace gpu_platform::cli
