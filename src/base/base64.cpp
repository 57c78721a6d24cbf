#include "base/base64.h"

#include <algorithm>
#include <array>

namespace gpu_platform::base {

namespace {

constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kUrlLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::string_view letters_of(Base64 form) {
  return form == Base64::kStandard ? kLetters : kUrlLetters;
}

using Values = std::array<signed char, 256>;  // of each letter; -1: it is none

constexpr Values values_of(std::string_view letters) {
  Values values{};
  values.fill(-1);
  for (std::size_t i = 0; i < letters.size(); ++i) {
    values[static_cast<unsigned char>(letters[i])] = static_cast<signed char>(i);
  }
  return values;
}

const Values& values_of(Base64 form) {
  static constexpr Values kStandard = values_of(kLetters);
  static constexpr Values kUrl = values_of(kUrlLetters);
  return form == Base64::kStandard ? kStandard : kUrl;
}

bool is_padded(Base64 form) {
  return form != Base64::kUrlUnpadded;
}

}  // namespace

void append_base64(std::string& out, std::string_view bytes, Base64 form) {
  const std::string_view letters = letters_of(form);
  out.reserve(out.size() + (bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (std::size_t i = 0; i <= count; ++i) out.push_back(letters[group >> (18 - 6 * i) & 63]);
    if (is_padded(form)) out.append(3 - count, '=');
  }
}

std::string to_base64(std::string_view bytes, Base64 form) {
  std::string out;
  append_base64(out, bytes, form);
  return out;
}

std::optional<std::string> parse_base64(std::string_view text, Base64 form) {
  const Values& values = values_of(form);
  if (is_padded(form)) {
    if (text.size() % 4 != 0) return std::nullopt;
    for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  }
  std::string out;
  out.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  unsigned held = 0;  // of them, those that belong to no byte yet
  for (const char c : text) {
    const signed char value = values[static_cast<unsigned char>(c)];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out.push_back(static_cast<char>(bits >> held & 0xff));
    bits &= (1U << held) - 1;
  }
  if (held >= 6 || bits != 0) return std::nullopt;
  return out;
}

bool is_base64(char c, Base64 form) {
  return values_of(form)[static_cast<unsigned char>(c)] >= 0 || (c == '=' && is_padded(form));
}

}  // namespace gpu_platform::base
