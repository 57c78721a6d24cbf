#include "execution/kubernetes/api_values.h"

#include <algorithm>
#include <limits>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/utc.h"
#include "base/utf8.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;
__extension__ using Wide = __int128;

constexpr std::size_t kMaxShown = 64;  // of a text in an error

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A quantity is mantissa · 2^binary · 10^decimal.
struct Quantity {
  Wide mantissa = 0;
  int binary = 0;
  int decimal = 0;
};

struct Suffix {
  std::string_view name;
  int binary = 0;
  int decimal = 0;
};

constexpr Suffix kSuffixes[] = {
    {"", 0, 0},    {"n", 0, -9},  {"u", 0, -6},  {"m", 0, -3},  {"k", 0, 3},   {"M", 0, 6},
    {"G", 0, 9},   {"T", 0, 12},  {"P", 0, 15},  {"E", 0, 18},  {"Ki", 10, 0}, {"Mi", 20, 0},
    {"Gi", 30, 0}, {"Ti", 40, 0}, {"Pi", 50, 0}, {"Ei", 60, 0},
};

// "e3", "E-2" after the digits. Exponents of more than three digits have no use.
bool read_exponent(std::string_view text, Quantity& quantity) {
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return false;
  text.remove_prefix(1);
  const bool is_negative = text[0] == '-';
  if (text[0] == '-' || text[0] == '+') text.remove_prefix(1);
  if (text.empty() || text.size() > 3 || !std::ranges::all_of(text, is_digit)) return false;
  int exponent = 0;
  for (const char c : text) exponent = exponent * 10 + (c - '0');
  quantity.decimal += is_negative ? -exponent : exponent;
  return true;
}

bool read_suffix(std::string_view text, Quantity& quantity) {
  const auto* const found = std::ranges::find(kSuffixes, text, &Suffix::name);
  if (found == std::end(kSuffixes)) return read_exponent(text, quantity);
  quantity.binary = found->binary;
  quantity.decimal += found->decimal;
  return true;
}

// Nothing if it is no quantity. More digits than a mantissa holds round it up.
std::optional<Quantity> read_quantity(std::string_view text) {
  constexpr Wide kMaxMantissa = Wide{1} << 62;
  if (text.starts_with('+')) text.remove_prefix(1);
  Quantity quantity;
  bool has_digit = false;
  bool has_point = false;
  bool has_rest = false;
  std::size_t i = 0;
  for (; i < text.size() && (is_digit(text[i]) || (text[i] == '.' && !has_point)); ++i) {
    if (text[i] == '.') {
      has_point = true;
      continue;
    }
    has_digit = true;
    if (quantity.mantissa >= kMaxMantissa) {
      has_rest = has_rest || text[i] != '0';
      if (!has_point) ++quantity.decimal;
      continue;
    }
    quantity.mantissa = quantity.mantissa * 10 + (text[i] - '0');
    if (has_point) --quantity.decimal;
  }
  if (has_rest) ++quantity.mantissa;
  if (!has_digit || !read_suffix(text.substr(i), quantity)) return std::nullopt;
  return quantity;
}

// Rounded up; nothing if it does not fit.
std::optional<std::int64_t> value_of(const Quantity& quantity) {
  constexpr int kMaxDigits = 38;  // that Wide holds
  if (quantity.mantissa == 0) return 0;
  Wide value = 0;
  if (__builtin_mul_overflow(quantity.mantissa, Wide{1} << quantity.binary, &value)) {
    return std::nullopt;
  }
  for (int i = 0; i < quantity.decimal; ++i) {
    if (__builtin_mul_overflow(value, Wide{10}, &value)) return std::nullopt;
  }
  if (quantity.decimal < -kMaxDigits) return 1;
  Wide divisor = 1;
  for (int i = 0; i > quantity.decimal; --i) divisor *= 10;
  value = value / divisor + (value % divisor == 0 ? 0 : 1);
  if (value > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

base::Result<std::int64_t> parse_scaled(std::string_view text, int decimal) {
  std::optional<Quantity> quantity = read_quantity(text);
  if (!quantity) {
    return base::invalid({}, fmt::format("'{}' is not a quantity of Kubernetes",
                                         printable_line(text.substr(0, kMaxShown))));
  }
  quantity->decimal += decimal;
  const std::optional<std::int64_t> value = value_of(*quantity);
  if (!value) {
    return base::invalid({}, fmt::format("the quantity '{}' is too large",
                                         printable_line(text.substr(0, kMaxShown))));
  }
  return *value;
}

}  // namespace

const Json& at(const Json& object, JsonPath path) {
  static const Json kNull;
  const Json* value = &object;
  for (const std::string_view name : path) {
    if (!value->is_object()) return kNull;
    const auto found = value->find(name);
    if (found == value->end()) return kNull;
    value = &*found;
  }
  return *value;
}

const Json& list_at(const Json& object, JsonPath path) {
  static const Json kEmpty = Json::array();
  const Json& value = at(object, path);
  return value.is_array() ? value : kEmpty;
}

const Json& map_at(const Json& object, JsonPath path) {
  static const Json kEmpty = Json::object();
  const Json& value = at(object, path);
  return value.is_object() ? value : kEmpty;
}

std::string_view text_at(const Json& object, JsonPath path) {
  const Json& value = at(object, path);
  return value.is_string() ? std::string_view(value.get_ref<const std::string&>())
                           : std::string_view();
}

std::string line_at(const Json& object, JsonPath path) {
  return printable_line(text_at(object, path));
}

std::int64_t number_at(const Json& object, JsonPath path, std::int64_t otherwise) {
  const Json& value = at(object, path);
  if (!value.is_number_integer()) return otherwise;
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kMost) return otherwise;
  return value.get<std::int64_t>();
}

bool flag_at(const Json& object, JsonPath path) {
  const Json& value = at(object, path);
  return value.is_boolean() && value.get<bool>();
}

std::string printable_line(std::string_view text) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~'; };
  if (text.size() <= kMaxLine && std::ranges::all_of(text, is_plain)) return std::string(text);
  constexpr std::string_view kMore = "…";
  std::string line;
  std::size_t room = 0;  // where the line is cut if more comes than it takes
  while (!text.empty()) {
    std::string_view rest = text;
    const char32_t c = base::take_character(rest);
    std::string_view shown = text.substr(0, text.size() - rest.size());
    if (c == base::kNotUtf8) {
      shown = "?";
    } else if (base::is_harmful(c)) {
      shown = " ";
    }
    if (line.size() + kMore.size() <= kMaxLine) room = line.size();
    if (line.size() + shown.size() > kMaxLine) {
      line.resize(room);
      return line.append(kMore);
    }
    line.append(shown);
    text = rest;
  }
  return line;
}

std::string printable_line(std::string_view head, std::string_view rest) {
  if (head.empty() || rest.empty()) return printable_line(head.empty() ? rest : head);
  return printable_line(fmt::format("{}: {}", head, rest));
}

std::string taint_text(const Json& taint) {
  const std::string_view value = text_at(taint, {"value"});
  return printable_line(fmt::format("taint {}{}{}:{}", text_at(taint, {"key"}),
                                    value.empty() ? "" : "=", value, text_at(taint, {"effect"})));
}

bool keeps_pods_away(const Json& taint) {
  const std::string_view effect = text_at(taint, {"effect"});
  return effect == "NoSchedule" || effect == "NoExecute";
}

base::Result<std::int64_t> parse_quantity_milli(std::string_view text) {
  return parse_scaled(text, 3);
}

base::Result<std::int64_t> parse_quantity(std::string_view text) {
  return parse_scaled(text, 0);
}

base::Instant parse_time(std::string_view text) {
  return base::parse_rfc3339(text).value_or(base::Instant());
}

}  // namespace gpu_platform::execution
