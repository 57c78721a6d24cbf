#include "base/utf8.h"

#include <algorithm>
#include <array>

namespace gpu_platform::base {

namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// C0 and C1 controls, and what turns the direction of writing.
constexpr std::array kHarmful = {
    Range{0x00, 0x1f},     Range{0x7f, 0x9f},     Range{0x061c, 0x061c}, Range{0x200e, 0x200f},
    Range{0x2028, 0x202e}, Range{0x2060, 0x206f}, Range{0xfeff, 0xfeff}, Range{0xe0000, 0xe0fff}};

}  // namespace

char32_t take_character(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t size = lead < 0x80             ? 1
                           : (lead & 0xe0) == 0xc0 ? 2
                           : (lead & 0xf0) == 0xe0 ? 3
                           : (lead & 0xf8) == 0xf0 ? 4
                                                   : 0;
  if (size == 0 || size > text.size()) {
    text.remove_prefix(1);
    return kNotUtf8;
  }
  char32_t c = size == 1 ? lead : static_cast<char32_t>(lead & (0x7f >> size));
  for (std::size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) {
      text.remove_prefix(1);
      return kNotUtf8;
    }
    c = c << 6 | (byte & 0x3f);
  }
  constexpr char32_t kLeastOfSize[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = c >= 0xd800 && c <= 0xdfff;
  if (c < kLeastOfSize[size] || surrogate || c > 0x10ffff) {
    text.remove_prefix(1);
    return kNotUtf8;
  }
  text.remove_prefix(size);
  return c;
}

bool is_harmful(char32_t c) {
  return c == kNotUtf8 ||
         std::ranges::any_of(kHarmful, [c](Range r) { return c >= r.first && c <= r.last; });
}

std::string without_harmful(std::string_view text, std::string_view kept) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
  std::string out;
  while (!text.empty()) {
    const std::string_view before = text;
    const bool is_harmless = !is_harmful(take_character(text));
    const std::string_view taken = before.substr(0, before.size() - text.size());
    const bool is_kept = taken.size() == 1 && kept.find(taken.front()) != std::string_view::npos;
    out += is_harmless || is_kept ? taken : kReplacement;
  }
  return out;
}

}  // namespace gpu_platform::base
