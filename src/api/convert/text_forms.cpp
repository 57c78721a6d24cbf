#include "api/convert/text_forms.h"

#include <array>
#include <charconv>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

namespace gpu_platform::api {

namespace {

// Length of the valid UTF-8 sequence at the front (1 to 4), 0 when there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return continues(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    // No overlong forms, no surrogates.
    const unsigned low = lead == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = lead == 0xed ? 0x9f : 0xbf;
    return continues(1, low, high) && continues(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    const unsigned low = lead == 0xf0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xf4 ? 0x8f : 0xbf;
    return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
  }
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  std::size_t plain = 0;  // bytes at the front that go as they are
  while (plain < text.size()) {
    const auto c = static_cast<unsigned char>(text[plain]);
    if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
      ++plain;
      continue;
    }
    const std::size_t length = c < 0x80 ? 1 : sequence_length(text.substr(plain));
    if (length > 1) {
      plain += length;
      continue;
    }
    out.append(text.substr(0, plain));
    if (length == 0) {
      out += "\xef\xbf\xbd";
    } else {
      append_escaped(out, text[plain]);
    }
    text.remove_prefix(plain + 1);
    plain = 0;
  }
  out.append(text);
  out.push_back('"');
}

std::string signal_name(std::uint8_t signal) {
  const char* name = sigabbrev_np(signal);
  return name == nullptr ? fmt::format("SIG{}", signal) : fmt::format("SIG{}", name);
}

std::optional<std::uint8_t> signal_number(std::string_view name) {
  if (!name.starts_with("SIG")) return std::nullopt;
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal_name(static_cast<std::uint8_t>(signal)) == name) {
      return static_cast<std::uint8_t>(signal);
    }
  }
  return std::nullopt;
}

}  // namespace gpu_platform::api
