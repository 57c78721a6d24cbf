#pragma once

#include <string>
#include <string_view>

// Paths of the Kubernetes API. Pure.

namespace gpu_platform::kubernetes {

// Returns what a path lists, as an administrator's rules name it: "pods in namespace lab",
// "resourceslices.resource.k8s.io".
std::string resource_of(std::string_view path);

// Returns the text as a value in a query: all but letters, digits, '-', '_', '.' and '~' in
// percents.
std::string query_value(std::string_view text);

}  // namespace gpu_platform::kubernetes
