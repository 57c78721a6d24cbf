#pragma once

#include <array>
#include <string_view>

namespace gpu_platform::config {

// A key that was renamed. A file that has the old name is refused, and the error names the new one.
struct RetiredKey {
  std::string_view path;
  std::string_view instead;
};

inline constexpr std::array kRetiredKeys = {
    RetiredKey{"api.show_commands", "access.visibility.commands"},
    RetiredKey{"health.strangers", "health.unmanaged_processes"},
    RetiredKey{"scheduling.reservation_depth", "scheduling.backfill_depth"},
};

}  // namespace gpu_platform::config
