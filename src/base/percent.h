#pragma once

#include <optional>
#include <string>
#include <string_view>

// Percent-encoding (RFC 3986), as addresses and the messages of gRPC have it.

namespace gpu_platform::base {

// Returns whether the character stands for itself in every part of an address.
bool is_unreserved(char c);

// Every character that `is_plain` does not allow becomes "%XX".
std::string percent_encoded(std::string_view text, bool (*is_plain)(char) = is_unreserved);

enum class Plus : bool {
  kIsItself,
  kIsSpace
};  // what "+" stands for: in queries of forms, a space
// Returns nothing where a "%" has no two digits behind it.
std::optional<std::string> percent_decoded(std::string_view text, Plus plus = Plus::kIsItself);

}  // namespace gpu_platform::base
