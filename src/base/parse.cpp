#include "base/parse.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/letters.h"

namespace gpu_platform::base {

namespace {

constexpr std::string_view kDurationForms =
    "write it as 90s, 15m, 2h, 1d, HH:MM:SS, D-HH:MM:SS, or a number of minutes";
constexpr std::string_view kSizeForms =
    "write it as 16G (2^30 bytes), 16GB (10^9 bytes), or a number of MiB";

struct Unit {
  std::string_view name;
  std::int64_t factor;
};

constexpr std::array kDurationUnits = {Unit{"s", 1}, Unit{"m", 60}, Unit{"h", 3600},
                                       Unit{"d", 86400}, Unit{"", 60}};

constexpr std::int64_t kKi = 1024;
constexpr std::array kSizeUnits = {
    Unit{"", kKi* kKi},
    Unit{"B", 1},
    Unit{"K", kKi},
    Unit{"KIB", kKi},
    Unit{"KB", 1'000},
    Unit{"M", kKi* kKi},
    Unit{"MIB", kKi* kKi},
    Unit{"MB", 1'000'000},
    Unit{"G", kKi* kKi* kKi},
    Unit{"GIB", kKi* kKi* kKi},
    Unit{"GB", 1'000'000'000},
    Unit{"T", kKi* kKi* kKi* kKi},
    Unit{"TIB", kKi* kKi* kKi* kKi},
    Unit{"TB", 1'000'000'000'000},
    Unit{"P", kKi* kKi* kKi* kKi* kKi},
    Unit{"PIB", kKi* kKi* kKi* kKi* kKi},
    Unit{"PB", 1'000'000'000'000'000},
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool same_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (to_upper(a[i]) != to_upper(b[i])) return false;
  }
  return true;
}

// Returns the text as it is shown to people: without anything that could disturb a terminal, and
// shortened.
std::string quoted(std::string_view text) {
  constexpr std::size_t kMax = 60;
  std::string shown = "'";
  for (const char c : text.substr(0, kMax)) {
    shown.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c);
  }
  return shown + (text.size() > kMax ? "…'" : "'");
}

enum class Digits { kOk, kMalformed, kTooLarge };

Digits read_digits(std::string_view text, std::int64_t& value) {
  if (text.empty()) return Digits::kMalformed;
  for (const char c : text) {
    if (!is_digit(c)) return Digits::kMalformed;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? Digits::kOk : Digits::kTooLarge;
}

// "an amount", "a duration".
std::string_view article_of(std::string_view noun) {
  return std::string_view("aeiou").contains(noun.front()) ? "an" : "a";
}

std::unexpected<Error> malformed(std::string_view text, std::string_view what,
                                 std::string_view forms) {
  return invalid({},
                 fmt::format("{} is not {} {}: {}", quoted(text), article_of(what), what, forms));
}

std::unexpected<Error> too_large(std::string_view text, std::string_view what) {
  return invalid({},
                 fmt::format("{} is too large for {} {}", quoted(text), article_of(what), what));
}

// A number followed by one of the units, times that unit's factor times `scale`.
Result<std::int64_t> read_with_unit(std::string_view text, std::span<const Unit> units,
                                    std::int64_t scale, std::string_view what,
                                    std::string_view forms) {
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) ++digits;
  for (const Unit& unit : units) {
    if (!same_ignoring_case(unit.name, text.substr(digits))) continue;
    std::int64_t value = 0;
    const Digits read = read_digits(text.substr(0, digits), value);
    if (read == Digits::kMalformed) break;
    if (read == Digits::kTooLarge || __builtin_mul_overflow(value, unit.factor, &value) ||
        __builtin_mul_overflow(value, scale, &value)) {
      return too_large(text, what);
    }
    return value;
  }
  return malformed(text, what, forms);
}

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr std::int64_t kNsPerMillisecond = 1'000'000;
constexpr std::int64_t kMicros = 1'000'000;  // of one of the currency

Result<Duration> read_clock(std::string_view text) {
  const std::size_t first = text.find(':');
  const std::size_t second = text.find(':', first + 1);
  if (second == std::string_view::npos) return malformed(text, "duration", kDurationForms);
  const std::string_view parts[] = {
      text.substr(0, first), text.substr(first + 1, second - first - 1), text.substr(second + 1)};
  std::int64_t values[3] = {};
  for (int i = 0; i < 3; ++i) {
    const Digits read = read_digits(parts[i], values[i]);
    const bool out_of_clock = i > 0 && (parts[i].size() > 2 || values[i] > 59);
    if (read == Digits::kMalformed || out_of_clock) {
      return malformed(text, "duration", kDurationForms);
    }
    if (read == Digits::kTooLarge) return too_large(text, "duration");
  }
  std::int64_t total = 0;
  if (__builtin_mul_overflow(values[0], 3600, &total) ||
      __builtin_add_overflow(total, values[1] * 60 + values[2], &total) ||
      __builtin_mul_overflow(total, kNsPerSecond, &total)) {
    return too_large(text, "duration");
  }
  return Duration(total);
}

// Slurm's "D-HH", "D-HH:MM" and "D-HH:MM:SS".
Result<Duration> read_days(std::string_view text) {
  constexpr std::int64_t kLast[] = {0, 23, 59, 59};
  constexpr std::int64_t kSeconds[] = {86400, 3600, 60, 1};
  std::int64_t total = 0;
  std::size_t begin = 0;
  for (int i = 0; i < 4; ++i) {
    const std::size_t end = std::min(text.find(i == 0 ? '-' : ':', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    std::int64_t value = 0;
    const Digits read = read_digits(part, value);
    const bool out_of_clock = i > 0 && (part.size() > 2 || value > kLast[i]);
    if (read == Digits::kMalformed || out_of_clock) break;
    if (read == Digits::kTooLarge || __builtin_mul_overflow(value, kSeconds[i], &value) ||
        __builtin_add_overflow(total, value, &total)) {
      return too_large(text, "duration");
    }
    if (end == text.size()) {
      if (__builtin_mul_overflow(total, kNsPerSecond, &total)) return too_large(text, "duration");
      return Duration(total);
    }
    begin = end + 1;
  }
  return malformed(text, "duration", kDurationForms);
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  if (text.find('-') != std::string_view::npos) return read_days(text);
  if (text.find(':') != std::string_view::npos) return read_clock(text);
  TRY_ASSIGN(const std::int64_t ns,
             read_with_unit(text, kDurationUnits, kNsPerSecond, "duration", kDurationForms));
  return Duration(ns);
}

Result<Duration> parse_short_duration(std::string_view text) {
  constexpr std::array kMilliseconds = {Unit{"ms", 1}};
  if (!text.ends_with("ms") && !text.ends_with("MS")) return parse_duration(text);
  TRY_ASSIGN(const std::int64_t ns, read_with_unit(text, kMilliseconds, kNsPerMillisecond,
                                                   "duration", "write it as 100ms, 10s or 1m"));
  return Duration(ns);
}

Result<GpuShare> parse_gpu_share(std::string_view text) {
  constexpr std::size_t kDecimals = 3;
  constexpr std::string_view kForms = "write it as 0.5, with at most three decimals";
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view decimals =
      point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  const bool is_zero = std::ranges::all_of(whole, [](char c) { return c == '0'; });
  if (decimals.empty() || !std::ranges::all_of(decimals, is_digit) || !is_zero) {
    return malformed(text, "part of one GPU", kForms);
  }
  if (decimals.size() > kDecimals) {
    const std::string_view kept = decimals.substr(0, kDecimals);
    return invalid({}, fmt::format("{} has more than three decimals: write 0.{}", quoted(text),
                                   kept == "000" ? "001" : kept));
  }
  std::int64_t thousandths = 0;
  for (std::size_t i = 0; i < kDecimals; ++i) {
    thousandths = thousandths * 10 + (i < decimals.size() ? decimals[i] - '0' : 0);
  }
  if (thousandths == 0) {
    return invalid({}, fmt::format("{} is no part: the least is 0.001", quoted(text)));
  }
  return GpuShare(thousandths * (kWholeGpu.value() / 1000));
}

Result<MicroUsd> parse_money(std::string_view text) {
  constexpr std::size_t kDecimals = 6;
  constexpr std::int64_t kMax = 1'000'000'000;
  constexpr std::string_view kForms = "write it as 4.10, with at most six decimals";
  const std::size_t point = text.find('.');
  const std::string_view decimals =
      point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  std::int64_t whole = 0;
  const Digits read = read_digits(text.substr(0, point), whole);
  const bool has_decimals = point == std::string_view::npos || !decimals.empty();
  if (read == Digits::kMalformed || !has_decimals || !std::ranges::all_of(decimals, is_digit)) {
    return malformed(text, "amount of money", kForms);
  }
  if (decimals.size() > kDecimals) {
    return invalid({}, fmt::format("{} has more than six decimals", quoted(text)));
  }
  std::int64_t millionths = 0;
  for (std::size_t i = 0; i < kDecimals; ++i) {
    millionths = millionths * 10 + (i < decimals.size() ? decimals[i] - '0' : 0);
  }
  if (read == Digits::kTooLarge || whole > kMax || (whole == kMax && millionths > 0)) {
    return invalid({}, fmt::format("{} is too large: at most {} is allowed", quoted(text), kMax));
  }
  return MicroUsd(whole * kMicros + millionths);
}

Result<MicroUsd> parse_signed_money(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  TRY_ASSIGN(const MicroUsd amount, parse_money(text.substr(is_negative ? 1 : 0)));
  return is_negative ? amount * -1 : amount;
}

Result<Bytes> parse_size(std::string_view text) {
  TRY_ASSIGN(const std::int64_t bytes, read_with_unit(text, kSizeUnits, 1, "size", kSizeForms));
  return Bytes(bytes);
}

Result<std::uint64_t> parse_count(std::string_view text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool digits_only = !text.empty() && end == text.data() + text.size();
  if (error == std::errc::invalid_argument || !digits_only) {
    return invalid(
        {}, fmt::format("{} is not a whole number from {} to {}", quoted(text), least, most));
  }
  if (error != std::errc() || value < least || value > most) {
    return invalid(
        {}, fmt::format("{} is out of range: {} to {} is allowed", quoted(text), least, most));
  }
  return value;
}

std::string written(Duration duration) {
  const std::int64_t whole = duration.value() / kNsPerSecond;
  constexpr std::array kLargestFirst = {Unit{"d", 86400}, Unit{"h", 3600}, Unit{"m", 60}};
  for (const Unit& unit : kLargestFirst) {
    if (whole != 0 && whole % unit.factor == 0) {
      return fmt::format("{}{}", whole / unit.factor, unit.name);
    }
  }
  return fmt::format("{}s", whole);
}

std::string written(Bytes size) {
  std::string shortest = fmt::format("{}B", size.value());
  constexpr std::array kPreferred = {"K", "M", "G", "T", "P", "KB", "MB", "GB", "TB", "PB"};
  for (const std::string_view name : kPreferred) {
    for (const Unit& unit : kSizeUnits) {
      if (unit.name != name || size.value() == 0 || size.value() % unit.factor != 0) continue;
      std::string form = fmt::format("{}{}", size.value() / unit.factor, name);
      if (form.size() < shortest.size()) shortest = std::move(form);
    }
  }
  return shortest;
}

std::string written(MicroUsd amount) {
  constexpr std::size_t kMinDecimals = 2;
  // Unsigned, because the least number has no positive one.
  const bool is_negative = amount.value() < 0;
  const std::uint64_t micros = is_negative ? 0 - static_cast<std::uint64_t>(amount.value())
                                           : static_cast<std::uint64_t>(amount.value());
  std::string decimals = fmt::format("{:06}", micros % kMicros);
  while (decimals.size() > kMinDecimals && decimals.back() == '0') decimals.pop_back();
  return fmt::format("{}{}.{}", is_negative ? "-" : "", micros / kMicros, decimals);
}

std::string written_share(GpuShare share) {
  const std::int64_t each = kWholeGpu.value() / 1000;
  const std::int64_t thousandths = (share.value() + each / 2) / each;
  std::string text = fmt::format("{}.{:03}", thousandths / 1000, thousandths % 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string written_short(Duration duration) {
  const std::int64_t ms = duration.value() / kNsPerMillisecond;
  return ms % 1000 == 0 ? written(duration) : fmt::format("{}ms", ms);
}

}  // namespace gpu_platform::base
