#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpu_platform::base {

// The names that a list such as "dgx-[01-16,20],login" stands for, in its order; numbers keep their
// leading zeros. Nothing where its brackets make no sense or it stands for more than 100,000.
std::optional<std::vector<std::string>> expand_names(std::string_view list);

}  // namespace gpu_platform::base
