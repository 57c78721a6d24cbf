#include "api/convert/text_forms.h"

#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>

#include <fmt/format.h>

namespace gpu_platform::api {

namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

void append_digits(char*& out, unsigned value, int digits) {
  for (int i = digits - 1; i >= 0; --i) {
    out[i] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
  out += digits;
}

// Takes exactly `digits` decimal digits off the front of text.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

// Seconds since 1970 of "YYYY-MM-DDThh:mm:ss", without a zone.
std::optional<std::int64_t> take_date_time(std::string_view& text) {
  const auto year = take_number(text, 4);
  if (!year || *year < 1970 || *year > 2261 || !take(text, "-")) return std::nullopt;
  const auto month = take_number(text, 2);
  if (!month || !take(text, "-")) return std::nullopt;
  const auto day = take_number(text, 2);
  if (!day || !take(text, "Tt ")) return std::nullopt;
  const auto hour = take_number(text, 2);
  if (!hour || *hour > 23 || !take(text, ":")) return std::nullopt;
  const auto minute = take_number(text, 2);
  if (!minute || *minute > 59 || !take(text, ":")) return std::nullopt;
  const auto second = take_number(text, 2);
  if (!second || *second > 59) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ((days * 24 + *hour) * 60 + *minute) * 60 + *second;
}

// ".25" as nanoseconds; no fraction is zero.
std::optional<std::int64_t> take_fraction(std::string_view& text) {
  if (!take(text, ".")) return 0;
  std::int64_t nanoseconds = 0;
  std::int64_t unit = kNanosecondsPerSecond;
  std::size_t digits = 0;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    if (++digits > 9) return std::nullopt;
    unit /= 10;
    nanoseconds += (text.front() - '0') * unit;
    text.remove_prefix(1);
  }
  if (digits == 0) return std::nullopt;
  return nanoseconds;
}

// "Z" or "+hh:mm" as seconds east of Greenwich.
std::optional<std::int64_t> take_zone(std::string_view& text) {
  if (take(text, "Zz")) return 0;
  if (text.empty()) return std::nullopt;
  const int sign = text.front() == '-' ? -1 : 1;
  if (!take(text, "+-")) return std::nullopt;
  const auto hours = take_number(text, 2);
  if (!hours || *hours > 23 || !take(text, ":")) return std::nullopt;
  const auto minutes = take_number(text, 2);
  if (!minutes || *minutes > 59) return std::nullopt;
  return sign * (*hours * 3600 + *minutes * 60);
}

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

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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

void append_rfc3339(std::string& out, base::Instant at) {
  const std::chrono::sys_time<std::chrono::nanoseconds> time{
      std::chrono::nanoseconds(at.unix_ns())};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const auto milliseconds_of_day =
      static_cast<unsigned>(std::chrono::floor<std::chrono::milliseconds>(time - day).count());
  char text[24];
  char* end = text;
  append_digits(end, static_cast<unsigned>(static_cast<int>(date.year())), 4);
  *end++ = '-';
  append_digits(end, static_cast<unsigned>(date.month()), 2);
  *end++ = '-';
  append_digits(end, static_cast<unsigned>(date.day()), 2);
  *end++ = 'T';
  append_digits(end, milliseconds_of_day / 3'600'000, 2);
  *end++ = ':';
  append_digits(end, milliseconds_of_day / 60'000 % 60, 2);
  *end++ = ':';
  append_digits(end, milliseconds_of_day / 1000 % 60, 2);
  *end++ = '.';
  append_digits(end, milliseconds_of_day % 1000, 3);
  *end++ = 'Z';
  out.append(text, static_cast<std::size_t>(end - text));
}

std::optional<base::Instant> parse_rfc3339(std::string_view text) {
  const auto seconds = take_date_time(text);
  if (!seconds) return std::nullopt;
  const auto fraction = take_fraction(text);
  if (!fraction) return std::nullopt;
  const auto zone = take_zone(text);
  if (!zone || !text.empty()) return std::nullopt;
  const std::int64_t utc = *seconds - *zone;
  if (utc < 0) return std::nullopt;
  return base::Instant(utc * kNanosecondsPerSecond + *fraction);
}

void append_base64(std::string& out, std::string_view bytes) {
  out.reserve(out.size() + (bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    unsigned group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    out.push_back(kBase64[group >> 18 & 63]);
    out.push_back(kBase64[group >> 12 & 63]);
    out.push_back(count > 1 ? kBase64[group >> 6 & 63] : '=');
    out.push_back(count > 2 ? kBase64[group & 63] : '=');
  }
}

std::optional<std::string> parse_base64(std::string_view text) {
  static constexpr auto kValues = [] {
    std::array<signed char, 256> values{};
    values.fill(-1);
    for (std::size_t i = 0; i < kBase64.size(); ++i) {
      values[static_cast<unsigned char>(kBase64[i])] = static_cast<signed char>(i);
    }
    return values;
  }();
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && !text.empty() && text.back() == '=') {
    text.remove_suffix(1);
    ++padding;
  }
  std::string out;
  out.reserve(text.size() * 3 / 4);
  unsigned bits = 0;
  int held = 0;
  for (const char c : text) {
    const signed char value = kValues[static_cast<unsigned char>(c)];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<unsigned>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out.push_back(static_cast<char>(bits >> held & 0xff));
  }
  return out;
}

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
