#include "cli/text/money_text.h"

#include <charconv>
#include <cstdint>
#include <system_error>

#include <fmt/format.h>

#include "accounting/amount_text.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

base::MicroUsd amount_of(std::string_view text) {
  constexpr std::size_t kDecimals = 6;
  const std::size_t point = text.find('.');
  const std::string_view decimals =
      point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  if (decimals.size() > kDecimals) return {};
  std::string digits(text.substr(0, point));
  digits.append(decimals).append(kDecimals - decimals.size(), '0');
  std::int64_t millionths = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), millionths);
  const bool is_whole = error == std::errc() && end == digits.data() + digits.size();
  return base::MicroUsd(is_whole ? millionths : 0);
}

std::string single_amount(std::string_view text) {
  constexpr std::int64_t kHundredth = 10'000;
  const base::MicroUsd amount = amount_of(text);
  const bool is_small = amount.value() > -kHundredth && amount.value() < kHundredth;
  if (is_small && amount.value() != 0) return accounting::shortest(amount.value());
  return accounting::with_hundredths(accounting::HundredthRounder().next(amount.value()));
}

std::string single_amount(std::string_view text, std::string_view currency) {
  return fmt::format("{} {}", single_amount(text), harmless(currency));
}

}  // namespace gpu_platform::cli
