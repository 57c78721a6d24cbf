#include "sizing/text.h"

#include <algorithm>
#include <charconv>

#include "base/letters.h"

namespace gpu_platform::sizing {

namespace {

constexpr std::uint64_t kMaxWhole = 1'000'000'000'000'000;

}  // namespace

std::string plain(std::string_view name) {
  std::string text =
      base::to_lower(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  std::ranges::replace(text, '_', '-');
  return text;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::optional<std::uint64_t> take_thousandths(std::string_view& text) {
  std::uint64_t whole = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (code != std::errc() || whole > kMaxWhole) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  std::uint64_t thousandths = whole * 1000;
  if (text.size() < 2 || text[0] != '.' || !is_digit(text[1])) return thousandths;
  text.remove_prefix(1);
  for (std::uint64_t digit_is_worth = 100; !text.empty() && is_digit(text[0]);
       text.remove_prefix(1)) {
    thousandths += static_cast<std::uint64_t>(text[0] - '0') * digit_is_worth;
    digit_is_worth /= 10;
  }
  return thousandths;
}

}  // namespace gpu_platform::sizing
