#include "accounting/amount_text.h"

#include <string_view>

#include <fmt/format.h>

#include "base/check.h"
#include "base/units.h"

namespace gpu_platform::accounting {

namespace {

constexpr std::int64_t kMillionthsPerHundredth = 10'000;

// Halves away from zero.
__int128 quotient_rounded(__int128 dividend, std::int64_t divisor) {
  const __int128 half = divisor / 2;
  return (dividend < 0 ? dividend - half : dividend + half) / divisor;
}

// The digits of a number without its sign, also of the least one.
std::uint64_t size_of(std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  return number < 0 ? 0 - bits : bits;
}

std::string_view sign_of(std::int64_t number) {
  return number < 0 ? "-" : "";
}

}  // namespace

std::int64_t HourRounder::next(__int128 time) {
  exact_ += time;
  const __int128 total = quotient_rounded(exact_, kTimePerMicroHour);
  CHECK(total >= INT64_MIN && total <= INT64_MAX);
  const std::int64_t part = static_cast<std::int64_t>(total) - given_;
  given_ = static_cast<std::int64_t>(total);
  return part;
}

std::int64_t HundredthRounder::next(std::int64_t millionths) {
  exact_ = base::internal::checked_add(exact_, millionths);
  const auto total = static_cast<std::int64_t>(quotient_rounded(exact_, kMillionthsPerHundredth));
  const std::int64_t part = total - given_;
  given_ = total;
  return part;
}

std::string six_decimals(std::int64_t millionths) {
  const std::uint64_t size = size_of(millionths);
  return fmt::format("{}{}.{:06}", sign_of(millionths), size / 1'000'000, size % 1'000'000);
}

std::string shortest(std::int64_t millionths) {
  std::string text = six_decimals(millionths);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string with_hundredths(std::int64_t hundredths) {
  const std::uint64_t size = size_of(hundredths);
  std::string whole = fmt::to_string(size / 100);
  for (std::size_t at = whole.size(); at > 3;) whole.insert(at -= 3, 1, ',');
  return fmt::format("{}{}.{:02}", sign_of(hundredths), whole, size % 100);
}

}  // namespace gpu_platform::accounting
