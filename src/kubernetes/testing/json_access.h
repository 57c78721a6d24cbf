#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

// Reading of JSON that may lack what is asked for. Pointers are those of RFC 6901: "/status/phase".

namespace gpu_platform::kubernetes {

// The value at a pointer; null if there is none.
inline const nlohmann::json& value_at(const nlohmann::json& object, const char* pointer) {
  static const nlohmann::json kNull;
  const nlohmann::json::json_pointer at(pointer);
  return object.contains(at) ? object.at(at) : kNull;
}

// The text at a pointer; empty if there is none.
inline std::string text_at(const nlohmann::json& object, const char* pointer) {
  const nlohmann::json& value = value_at(object, pointer);
  return value.is_string() ? value.get<std::string>() : std::string();
}

// The number at a pointer; `otherwise` if there is none.
inline std::int64_t number_at(const nlohmann::json& object, const char* pointer,
                              std::int64_t otherwise) {
  const nlohmann::json& value = value_at(object, pointer);
  return value.is_number_integer() ? value.get<std::int64_t>() : otherwise;
}

// A list that lacks, is null or is empty.
inline bool is_empty_at(const nlohmann::json& object, const char* pointer) {
  return value_at(object, pointer).empty();
}

}  // namespace gpu_platform::kubernetes
