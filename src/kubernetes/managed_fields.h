#pragma once

#include <string>
#include <string_view>

namespace gpu_platform::kubernetes {

// The text of a JSON document without the arrays that its objects have as "managedFields": the API
// server's own bookkeeping, half of a pod's text, which nothing here reads and parsing pays for.
// Text that is not as the server writes it (white space before the array, an array without an end)
// is left as it is. Linear.
std::string without_managed_fields(std::string_view text);

}  // namespace gpu_platform::kubernetes
