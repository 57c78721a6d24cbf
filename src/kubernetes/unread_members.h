#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gpu_platform::kubernetes {

// The API server's own bookkeeping, half of a pod's text. Nothing here reads it.
inline constexpr std::string_view kManagedFields = "managedFields";

// Returns the text of a JSON document in which the arrays and objects with these names, wherever
// they are, are empty. Parsing costs ten times as much as this, so what is not read is not parsed.
// Text that is not as the server writes it (white space before the value, a value without an end)
// is left as it is. Linear.
std::string without_members(std::string_view text, std::span<const std::string_view> names);

}  // namespace gpu_platform::kubernetes
