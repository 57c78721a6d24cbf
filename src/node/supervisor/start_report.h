#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "node/supervisor/shared_page.h"

namespace gpu_platform::node {

// What a child says of itself on its way to its program, in a page that both have (shared_page.h).
struct StartReport {
  std::atomic<std::uint8_t> step = 0;
  std::atomic<bool> has_failed = false;  // at that step
  std::atomic<std::int32_t> error = 0;   // of the failure; 0: `why` says it alone

  // In the child: why it failed, more telling than the error. Cut where it is too long.
  void set_why(std::string_view text) {
    const std::size_t size = text.size() < sizeof why_ ? text.size() : sizeof why_;
    for (std::size_t i = 0; i < size; ++i) why_[i] = text[i];
  }
  // Empty: the error says all.
  std::string why() const {
    const std::string_view text(&why_[0], sizeof why_);
    return std::string(text.substr(0, text.find('\0')));
  }

 private:
  char why_[160] = {};
};

}  // namespace gpu_platform::node
