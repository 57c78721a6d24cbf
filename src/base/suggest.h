#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gpu_platform::base {

// Returns the candidate that a person most likely meant by `word`, or an empty view if none is
// near: at most one edit (insert, delete, replace, swap of neighbours) for every three letters.
// Case does not count. The first of equally near candidates wins. Views into `candidates`.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// "; did you mean 'x'?" or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace gpu_platform::base
