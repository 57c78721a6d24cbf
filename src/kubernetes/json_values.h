#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

// Reading JSON of unknown shape without exceptions.

namespace gpu_platform::kubernetes {

// Returns the member of that name, or null where the value is no object or has none.
inline const nlohmann::json* member(const nlohmann::json& value, std::string_view name) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(name);
  return found == value.end() ? nullptr : &*found;
}

// Returns the text of the member of that name; empty where there is none.
inline std::string_view text_of(const nlohmann::json& value, std::string_view name) {
  const nlohmann::json* found = member(value, name);
  if (found == nullptr || !found->is_string()) return {};
  return found->get_ref<const std::string&>();
}

// Returns the whole number of the member of that name; 0 where there is none.
inline std::int64_t number_of(const nlohmann::json& value, std::string_view name) {
  const nlohmann::json* found = member(value, name);
  return found != nullptr && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

}  // namespace gpu_platform::kubernetes
