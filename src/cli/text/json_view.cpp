#include "cli/text/json_view.h"

#include <algorithm>

#include "base/utc.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

const Json* find(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(std::string(key));
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

}  // namespace

std::optional<Json> parse_object(std::string_view text) {
  Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) return std::nullopt;
  return document;
}

std::string text_at(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  if (value == nullptr) return {};
  return value->is_string() ? value->get<std::string>() : json_text(*value);
}

std::optional<std::int64_t> integer_at(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  return value->get<std::int64_t>();
}

std::optional<base::Instant> time_at(const Json& object, std::string_view key) {
  return base::parse_rfc3339(text_at(object, key));
}

std::vector<std::string> texts_at(const Json& object, std::string_view key) {
  std::vector<std::string> texts;
  for (const Json& item : list_at(object, key)) {
    texts.push_back(item.is_string() ? item.get<std::string>() : json_text(item));
  }
  return texts;
}

const Json& list_at(const Json& object, std::string_view key) {
  static const Json kEmpty = Json::array();
  const Json* value = find(object, key);
  return value != nullptr && value->is_array() ? *value : kEmpty;
}

const Json& object_at(const Json& object, std::string_view key) {
  static const Json kEmpty = Json::object();
  const Json* value = find(object, key);
  return value != nullptr && value->is_object() ? *value : kEmpty;
}

Json in_node_order(const Json& list, const std::string& path) {
  const Json::json_pointer place(path);
  std::vector<std::pair<decltype(split_name("")), const Json*>> keyed;
  for (const Json& item : list) {
    const bool has_name = item.contains(place) && item.at(place).is_string();
    keyed.emplace_back(split_name(has_name ? item.at(place).get<std::string>() : ""), &item);
  }
  std::ranges::stable_sort(keyed, {}, [](const auto& pair) -> const auto& { return pair.first; });
  Json sorted = Json::array();
  for (const auto& [name, item] : keyed) sorted.push_back(*item);
  return sorted;
}

std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gpu_platform::cli
