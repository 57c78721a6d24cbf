#include "base/name_list.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include <fmt/format.h>

namespace gpu_platform::base {

namespace {

constexpr std::uint64_t kMaxNames = 100'000;  // that one list may stand for

// The numbers between brackets: "001-003,7".
std::optional<std::vector<std::string>> numbers_of(std::string_view ranges) {
  std::vector<std::string> numbers;
  while (!ranges.empty()) {
    const std::size_t comma = ranges.find(',');
    const std::string range(ranges.substr(0, comma));
    ranges.remove_prefix(comma == std::string_view::npos ? ranges.size() : comma + 1);
    if (range.empty()) continue;
    const std::size_t dash = range.find('-');
    const std::string first = range.substr(0, dash);
    const std::string last = dash == std::string::npos ? first : range.substr(dash + 1);
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    const auto read = [](const std::string& text, std::uint64_t& value) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      return error == std::errc() && end == text.data() + text.size();
    };
    if (!read(first, from) || !read(last, to) || to < from || to - from >= kMaxNames)
      return std::nullopt;
    for (std::uint64_t n = from; n <= to; ++n)
      numbers.push_back(fmt::format("{:0{}}", n, first.size()));
  }
  return numbers;
}

// One part of a list, "n[1-3]x", appended as names; false where its brackets make no sense.
bool append_names(std::string_view part, std::vector<std::string>& names) {
  std::vector<std::string> made{""};
  while (!part.empty()) {
    const std::size_t open = part.find('[');
    for (std::string& name : made) name += part.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = part.find(']', open);
    if (close == std::string_view::npos) return false;
    const auto numbers = numbers_of(part.substr(open + 1, close - open - 1));
    if (!numbers || numbers->empty()) return false;
    if (made.size() > kMaxNames / numbers->size()) return false;
    std::vector<std::string> longer;
    for (const std::string& name : made) {
      for (const std::string& number : *numbers) longer.push_back(name + number);
    }
    made = std::move(longer);
    part.remove_prefix(close + 1);
  }
  names.insert(names.end(), made.begin(), made.end());
  return true;
}

}  // namespace

std::optional<std::vector<std::string>> expand_names(std::string_view list) {
  std::vector<std::string> names;
  std::string_view rest = list;
  while (!rest.empty()) {
    // A comma between brackets belongs to the numbers.
    std::size_t end = 0;
    for (int depth = 0; end < rest.size() && (rest[end] != ',' || depth > 0); ++end) {
      depth += rest[end] == '[' ? 1 : rest[end] == ']' ? -1 : 0;
    }
    if (end > 0 && !append_names(rest.substr(0, end), names)) return std::nullopt;
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  return names;
}

}  // namespace gpu_platform::base
