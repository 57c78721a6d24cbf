#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

// Written forms of single values at the door: times, base64, UTF-8, JSON strings, signals.

namespace gpu_platform::api {

// "2026-07-01T12:00:00.250Z": RFC 3339 in UTC with milliseconds (cut, not rounded). Appends.
void append_rfc3339(std::string& out, base::Instant at);
// Reads RFC 3339 with "Z" or an offset and up to nine digits of fraction; years 1970 to 2261.
std::optional<base::Instant> parse_rfc3339(std::string_view text);

void append_base64(std::string& out, std::string_view bytes);
std::optional<std::string> parse_base64(std::string_view text);

bool is_valid_utf8(std::string_view text);

// Appends a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD: what we print is
// always valid JSON, whatever a file name or a system message holds.
void append_json_string(std::string& out, std::string_view text);

// "SIGKILL"; "SIG35" where it has no name. And back; nothing for what is no signal's name.
std::string signal_name(std::uint8_t signal);
std::optional<std::uint8_t> signal_number(std::string_view name);

}  // namespace gpu_platform::api
