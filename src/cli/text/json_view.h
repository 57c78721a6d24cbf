#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/units.h"

// Reading documents by their keys: those of others, and the daemon's where they are only passed on
// (client/answer.h reads its messages). Lenient on purpose: a field that is missing, null or of
// another type is simply absent, never an error.

namespace gpu_platform::cli {

using Json = nlohmann::ordered_json;

// The document, or nothing when the text is not a JSON object.
std::optional<Json> parse_object(std::string_view text);

// Text; numbers as they are written; empty when absent.
std::string text_at(const Json& object, std::string_view key);
std::optional<std::int64_t> integer_at(const Json& object, std::string_view key);
std::optional<base::Instant> time_at(const Json& object, std::string_view key);
std::vector<std::string> texts_at(const Json& object, std::string_view key);
// The list or object there, or an empty one.
const Json& list_at(const Json& object, std::string_view key);
const Json& object_at(const Json& object, std::string_view key);

// The list's objects by the name of a node, "dgx-9" before "dgx-10", otherwise as they came. `path`
// leads to the name: "/node", "/gpu/node".
Json in_node_order(const Json& list, const std::string& path);

// JSON text; never fails: bytes that are not UTF-8 are replaced.
std::string json_text(const Json& value);

}  // namespace gpu_platform::cli
