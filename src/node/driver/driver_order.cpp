#include "node/driver/driver_order.h"

#include <charconv>

namespace gpu_platform::node {

namespace {

template <class Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && number != 0;
}

bool parse_option(std::string_view name, std::string_view value, DriverOrder& order) {
  if (name == "--watts") return parse_number(value, order.watts);
  if (name == "--limit-ms") return parse_number(value, order.limit_ms);
  if (name == "--library") {
    order.library = value;
    return value.starts_with('/');
  }
  if (name != "--nvidia-smi") return false;
  order.nvidia_smi = value;
  return value.starts_with('/');
}

}  // namespace

std::optional<DriverOrder> parse_driver_order(std::span<const std::string_view> arguments) {
  if (arguments.empty()) return std::nullopt;
  const auto verb = parse_driver_verb(arguments.front());
  if (!verb) return std::nullopt;
  DriverOrder order;
  order.verb = *verb;
  std::size_t i = 1;
  for (; i < arguments.size() && arguments[i].starts_with("--"); i += 2) {
    if (i + 1 == arguments.size()) return std::nullopt;
    if (!parse_option(arguments[i], arguments[i + 1], order)) return std::nullopt;
  }
  for (; i < arguments.size(); ++i) order.gpus.emplace_back(arguments[i]);
  const bool has_both = order.is_emulated() == order.library.starts_with('/');
  const bool has_watts = (order.verb == DriverVerb::kPower) == (order.watts != 0);
  if (order.gpus.empty() || order.limit_ms == 0 || !has_both || !has_watts) return std::nullopt;
  return order;
}

}  // namespace gpu_platform::node
