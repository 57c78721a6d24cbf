#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "base/units.h"

// Reads what an API server answers. Pure, and total: for any JSON, nothing here throws or
// ends the program. A member that is missing or of another kind counts as absent.

namespace gpu_platform::execution {

using JsonPath = std::initializer_list<std::string_view>;  // of members, outermost first

// Returns the value at the path; null if there is none. The reference lives as long as `object`.
const nlohmann::json& at(const nlohmann::json& object, JsonPath path);
// Returns the array at the path; an empty one if there is none.
const nlohmann::json& list_at(const nlohmann::json& object, JsonPath path);
// Returns the object at the path; an empty one if there is none.
const nlohmann::json& map_at(const nlohmann::json& object, JsonPath path);
// Returns the text at the path, as it is; empty if there is none. A view into `object`.
std::string_view text_at(const nlohmann::json& object, JsonPath path);
// Returns the same on one printable line of at most kMaxLine bytes.
std::string line_at(const nlohmann::json& object, JsonPath path);
// Returns the integer at the path; `otherwise` if there is none, or if 64 bits do not hold it.
std::int64_t number_at(const nlohmann::json& object, JsonPath path, std::int64_t otherwise = 0);
// Returns true only for the value `true`.
bool flag_at(const nlohmann::json& object, JsonPath path);

inline constexpr std::size_t kMaxLine = 512;

// Returns the text on one line, for a terminal, a log and the journal: what is not printable
// becomes a space or '?', and a longer text ends with "…".
std::string printable_line(std::string_view text);
// Returns "HEAD: REST", each only if it is not empty, as one printable line.
std::string printable_line(std::string_view head, std::string_view rest);

// Returns "taint KEY=VALUE:EFFECT" for a taint of a Node or a device.
std::string taint_text(const nlohmann::json& taint);
// Returns whether a taint of a device keeps pods away; there are some for show.
bool keeps_pods_away(const nlohmann::json& taint);

// Kubernetes' quantities: "100m", "2", "1.5Gi", "1e3", "129e6". Rounded up. A negative one, and one
// that does not fit, is an error.
base::Result<std::int64_t> parse_quantity_milli(std::string_view text);
base::Result<std::int64_t> parse_quantity(std::string_view text);

// RFC 3339 with or without fractions (base/utc.h); unset if it is none.
base::Instant parse_time(std::string_view text);

}  // namespace gpu_platform::execution
