#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Written forms of single values at the door: UTF-8, JSON strings, signals.

namespace gpu_platform::api {

bool is_valid_utf8(std::string_view text);

// Appends a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD: what we print is
// always valid JSON, with any file name or system message in it.
void append_json_string(std::string& out, std::string_view text);

// "SIGKILL"; "SIG35" where it has no name. And back; nothing for what is no signal's name.
std::string signal_name(std::uint8_t signal);
std::optional<std::uint8_t> signal_number(std::string_view name);

}  // namespace gpu_platform::api
