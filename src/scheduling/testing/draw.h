#pragma once

#include <cstdint>

#include <rapidcheck.h>

// Functions that property tests of this room draw with.

namespace gpu_platform::scheduling {

// A number below n, each as likely as the others: rapidcheck alone begins with the smallest, and
// most worlds would have neither nodes nor jobs.
inline std::uint64_t draw(std::uint64_t n) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::uint64_t>(0, n));
}

}  // namespace gpu_platform::scheduling
