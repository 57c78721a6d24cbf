#pragma once

#include <cstdint>

namespace gpu_platform::model {

struct TerminalSize {
  std::uint16_t columns = 80;
  std::uint16_t rows = 24;
  friend bool operator==(const TerminalSize&, const TerminalSize&) = default;
};

}  // namespace gpu_platform::model
