#include "cli/text/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/letters.h"
#include "base/utc.h"
#include "base/utf8.h"

namespace gpu_platform::cli {

namespace {

using base::kNotUtf8;
using base::take_character;

struct Range {
  char32_t first;
  char32_t last;
};

// Combining marks, joiners and variation selectors: no column of their own.
constexpr std::array kZeroWidth = {
    Range{0x0300, 0x036f}, Range{0x1ab0, 0x1aff}, Range{0x1dc0, 0x1dff}, Range{0x200b, 0x200d},
    Range{0x20d0, 0x20ff}, Range{0xfe00, 0xfe0f}, Range{0xfe20, 0xfe2f}};
// East Asian wide and emoji: two columns.
constexpr std::array kWide = {
    Range{0x1100, 0x115f},   Range{0x2e80, 0x303e},   Range{0x3041, 0xa4cf},
    Range{0xac00, 0xd7a3},   Range{0xf900, 0xfaff},   Range{0xfe30, 0xfe4f},
    Range{0xff00, 0xff60},   Range{0xffe0, 0xffe6},   Range{0x1f300, 0x1f64f},
    Range{0x1f680, 0x1f6ff}, Range{0x1f900, 0x1f9ff}, Range{0x20000, 0x3fffd}};

template <std::size_t N>
bool is_in(char32_t c, const std::array<Range, N>& ranges) {
  return std::ranges::any_of(ranges, [c](Range r) { return c >= r.first && c <= r.last; });
}

std::size_t width_of(char32_t c) {
  if (c == kNotUtf8) return 1;
  if (is_in(c, kZeroWidth)) return 0;
  return is_in(c, kWide) ? 2 : 1;
}

bool is_plain_word(std::string_view word) {
  constexpr std::string_view kPlain = "_-./:=,+@%^";
  return !word.empty() && std::ranges::all_of(word, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kPlain.find(c) != std::string_view::npos || static_cast<unsigned char>(c) >= 0x80;
  });
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) width += width_of(take_character(text));
  return width;
}

std::string shortened(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::string_view rest = text;
  std::size_t used = 0;
  while (!rest.empty()) {
    std::string_view after = rest;
    const std::size_t next = width_of(take_character(after));
    if (used + next > width - 1) break;
    used += next;
    rest = after;
  }
  return std::string(text.substr(0, text.size() - rest.size())) + "…";
}

namespace {

// Takes as many characters from the front as fit; one at least, so that a caller comes on.
std::string_view take_columns(std::string_view& text, std::size_t width) {
  std::string_view rest = text;
  for (std::size_t used = 0; !rest.empty();) {
    std::string_view after = rest;
    used += width_of(take_character(after));
    if (used > width && rest.size() < text.size()) break;
    rest = after;
  }
  const std::string_view taken = text.substr(0, text.size() - rest.size());
  text = rest;
  return taken;
}

}  // namespace

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  if (width == 0) return {std::string(text)};
  std::vector<std::string> lines(1);
  std::size_t used = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t taken = display_width(word);
    if (used > 0 && used + 1 + taken <= width) {
      lines.back().push_back(' ');
      lines.back() += word;
      used += 1 + taken;
      continue;
    }
    if (used > 0) lines.emplace_back();
    while (display_width(word) > width) {
      lines.back() += take_columns(word, width);
      lines.emplace_back();
    }
    lines.back() += word;
    used = display_width(word);
  }
  return lines;
}

std::string key_line(std::string_view key, std::string_view value, std::size_t key_width,
                     std::size_t width) {
  if (value.empty()) return {};
  // A value in fewer columns could not be read.
  constexpr std::size_t kLeast = 20;
  const std::size_t rest = width < key_width + kLeast ? 0 : width - key_width;
  std::string text;
  for (const std::string& line : wrapped(harmless(value), rest)) {
    text += fmt::format("{:<{}}{}\n", text.empty() ? key : "", key_width, line);
  }
  return text;
}

std::string age(base::Duration duration) {
  const std::int64_t seconds = std::max<std::int64_t>(0, duration.value() / 1'000'000'000);
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  if (seconds < 86400) return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
  return fmt::format("{}d{:02}h", seconds / 86400, seconds / 3600 % 24);
}

std::string readable_size(std::int64_t bytes) {
  constexpr std::array kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  const bool whole = value == static_cast<double>(static_cast<std::int64_t>(value)) || value >= 100;
  return fmt::format("{:.{}f} {}", value, whole ? 0 : 1, kNames[unit]);
}

namespace {

std::string formatted_time(base::Instant at, const char* form) {
  const auto seconds = static_cast<std::time_t>(at.unix_ns() / 1'000'000'000);
  std::tm parts{};
  char buffer[64];
  if (localtime_r(&seconds, &parts) == nullptr) return "?";
  const std::size_t size = std::strftime(buffer, sizeof buffer, form, &parts);
  return std::string(buffer, size);
}

}  // namespace

std::string local_time(base::Instant at) {
  return formatted_time(at, "%Y-%m-%d %H:%M:%S %z");
}

std::string short_time(base::Instant at) {
  return formatted_time(at, "%Y-%m-%d %H:%M");
}

std::string with_local_times(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:ddZ";
  const auto has_form = [&](std::string_view part) {
    return part.size() == kForm.size() && std::ranges::equal(part, kForm, [](char c, char form) {
             return form == 'd' ? c >= '0' && c <= '9' : c == form;
           });
  };
  std::string told;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, kForm.size());
    const auto at = has_form(part) ? base::parse_rfc3339(part) : std::nullopt;
    told += at ? local_time(*at) : std::string(text.substr(0, 1));
    text.remove_prefix(at ? kForm.size() : 1);
  }
  return told;
}

std::vector<std::string> without_script_text(std::vector<std::string> command) {
  const auto text =
      std::ranges::find_if(command, [](const std::string& word) { return word.starts_with("#!"); });
  if (text == command.end() || text == command.begin() || *(text - 1) != "-c" ||
      text + 1 == command.end()) {
    return command;
  }
  command.erase(command.begin(), text + 1);
  return command;
}

std::string shell_quoted(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& word : command) {
    if (!line.empty()) line.push_back(' ');
    if (is_plain_word(word)) {
      line += word;
      continue;
    }
    line.push_back('\'');
    for (const char c : word) {
      if (c == '\'') {
        line += "'\\''";
      } else {
        line.push_back(c);
      }
    }
    line.push_back('\'');
  }
  return line;
}

std::pair<std::string, std::optional<std::uint64_t>> split_name(std::string_view name) {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  std::uint64_t number = 0;
  const auto [end, code] = std::from_chars(name.data() + digits, name.data() + name.size(), number);
  if (digits == name.size() || code != std::errc()) return {std::string(name), std::nullopt};
  return {std::string(name.substr(0, digits)), number};
}

std::string ranges_of(std::span<const std::int64_t> numbers) {
  std::string text;
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[begin]);
    if (end - begin > 1) text += fmt::format("-{}", numbers[end - 1]);
    begin = end;
  }
  return text;
}

std::string joined(std::span<const std::string> words, std::string_view between) {
  return fmt::format("{}", fmt::join(words, between));
}

std::string as_word(std::string_view name) {
  std::string word = base::to_lower(name);
  std::ranges::replace(word, '_', '-');
  return word;
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace gpu_platform::cli
