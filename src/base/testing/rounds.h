#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/check.h"

// How much a test tries that tries many of a kind.

namespace gpu_platform::base {

// GPU_PLATFORM_EVERY=7 says that every seventh is enough, as under sanitizers, which are many times
// slower and look for mistakes in memory alone. 1 where nothing is said.
inline std::uint64_t every_how_many() {
  const char* const said = std::getenv("GPU_PLATFORM_EVERY");
  const std::uint64_t every = said == nullptr ? 1 : std::stoull(said);
  CHECK(every > 0);
  return every;
}

// So many rounds of `all`, and at least one.
inline std::uint64_t rounds(std::uint64_t all) {
  return (all + every_how_many() - 1) / every_how_many();
}

}  // namespace gpu_platform::base
