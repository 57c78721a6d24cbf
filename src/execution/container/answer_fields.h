#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

// Fields of what an engine answers. A field that is missing, or is of another kind, is empty: an
// engine may answer anything.

namespace gpu_platform::execution {

inline nlohmann::json field(const nlohmann::json& answer, const char* name) {
  const bool has_it = answer.is_object() && answer.contains(name);
  return has_it ? answer[name] : nlohmann::json();
}
inline std::string text_field(const nlohmann::json& answer, const char* name) {
  const nlohmann::json value = field(answer, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}
inline std::int64_t number_field(const nlohmann::json& answer, const char* name,
                                 std::int64_t otherwise = 0) {
  const nlohmann::json value = field(answer, name);
  return value.is_number_integer() ? value.get<std::int64_t>() : otherwise;
}
inline bool flag_field(const nlohmann::json& answer, const char* name) {
  const nlohmann::json value = field(answer, name);
  return value.is_boolean() && value.get<bool>();
}

}  // namespace gpu_platform::execution
