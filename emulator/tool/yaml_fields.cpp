#include "tool/yaml_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/parse.h"
#include "tool/parse.h"

namespace gpu_emulator {

void YamlErrors::add(const YAML::Node& at, std::string_view field, std::string_view what) {
  if (first_) return;
  const int line = at.IsDefined() ? std::max(at.Mark().line + 1, 1) : 1;
  first_ = gpu_platform::base::Error{
      gpu_platform::base::ErrorCode::kInvalidArgument,
      fmt::format("{}:{}: {}{}{}", file_, line, field, field.empty() ? "" : ": ", what),
      std::string(field)};
}

YamlFields::YamlFields(YamlErrors& errors, const YAML::Node& node, std::string path,
                       std::initializer_list<std::string_view> keys,
                       std::initializer_list<std::string_view> optional)
    : errors_(errors), node_(node), path_(std::move(path)) {
  if (!node_.IsMap()) {
    errors_.add(node_, path_, fmt::format("a map with the fields {}", fmt::join(keys, ", ")));
    return;
  }
  std::vector<std::string> seen;
  for (const auto& entry : node_) {
    const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "?";
    const bool is_known = std::find(keys.begin(), keys.end(), key) != keys.end() ||
                          std::find(optional.begin(), optional.end(), key) != optional.end();
    if (!is_known) {
      errors_.add(entry.first, this->path(key),
                  fmt::format("unknown field; allowed are {}", fmt::join(keys, ", ")));
      return;
    }
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      errors_.add(entry.first, this->path(key), "given twice");
      return;
    }
    seen.push_back(key);
  }
  for (const std::string_view key : keys) {
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
    errors_.add(node_, this->path(key), "missing");
    return;
  }
  is_usable_ = true;
}

std::string YamlFields::path(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

YAML::Node YamlFields::node(std::string_view key) const {
  return is_usable_ ? node_[std::string(key)] : YAML::Node();
}

void YamlFields::reject(std::string_view key, std::string_view what) {
  errors_.add(is_usable_ ? node(key) : node_, path(key), what);
}

std::optional<std::string> YamlFields::scalar(std::string_view key) {
  if (!is_usable_) return std::nullopt;
  const YAML::Node value = node(key);
  if (value.IsScalar()) return value.Scalar();
  reject(key, "a single value is needed");
  return std::nullopt;
}

std::string YamlFields::text(std::string_view key, std::size_t max_length) {
  const auto value = scalar(key);
  if (!value) return {};
  const bool is_printable =
      std::ranges::all_of(*value, [](char c) { return c >= ' ' && c <= '~'; });
  if (value->empty() || value->size() > max_length || !is_printable) {
    reject(key, fmt::format("1 to {} printable ASCII characters are allowed", max_length));
    return {};
  }
  return *value;
}

std::uint32_t YamlFields::number(std::string_view key, std::uint64_t min, std::uint64_t max) {
  const auto value = scalar(key);
  if (!value) return 0;
  const auto number = parse_number(*value);
  if (!number || *number < min || *number > max) {
    reject(key, fmt::format("\"{}\" is not allowed; a number from {} to {} is", *value, min, max));
    return 0;
  }
  return static_cast<std::uint32_t>(*number);
}

std::uint64_t YamlFields::size(std::string_view key) {
  const auto value = scalar(key);
  if (!value) return 0;
  const auto bytes = gpu_platform::base::parse_size(*value);
  if (!bytes || bytes->value() == 0) {
    reject(key, fmt::format("\"{}\" is not a size; write it as 80GiB or 81559MiB", *value));
    return 0;
  }
  return static_cast<std::uint64_t>(bytes->value());
}

std::uint32_t YamlFields::choice(std::string_view key, const std::vector<Choice>& choices) {
  const auto value = scalar(key);
  if (!value) return 0;
  std::vector<std::string_view> names;
  for (const Choice& choice : choices) {
    if (choice.name == *value) return choice.value;
    names.push_back(choice.name);
  }
  reject(key, fmt::format("\"{}\" is not allowed; one of {} is", *value, fmt::join(names, ", ")));
  return 0;
}

std::pair<std::uint32_t, std::uint32_t> YamlFields::dotted(std::string_view key) {
  const auto value = scalar(key);
  if (!value) return {};
  const std::size_t dot = value->find('.');
  if (dot != std::string::npos) {
    const auto major = parse_number(std::string_view(*value).substr(0, dot));
    const auto minor = parse_number(std::string_view(*value).substr(dot + 1));
    if (major && minor && *major < 1000 && *minor < 100) {
      return {static_cast<std::uint32_t>(*major), static_cast<std::uint32_t>(*minor)};
    }
  }
  reject(key, fmt::format("\"{}\" is not allowed; two numbers with a dot are, as in 12.4", *value));
  return {};
}

std::vector<YAML::Node> YamlFields::list(std::string_view key, std::size_t min, std::size_t max) {
  if (!is_usable_) return {};
  const YAML::Node value = node(key);
  if (!value.IsSequence() || value.size() < min || value.size() > max) {
    reject(key, fmt::format("a list of {} to {} entries is needed", min, max));
    return {};
  }
  return {value.begin(), value.end()};
}

}  // namespace gpu_emulator
