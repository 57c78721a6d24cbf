#pragma once

#include <stdio.h>

#include <cstdint>

// The load that a process states in its own name (prctl PR_SET_NAME), "gpuw:90:16384": utilization
// in percent and MiB of memory. gpu-workload does so on a board that it may not change: the board's
// owner reads the name of a process that it has entered itself, so no user can state anything about
// a process, or a GPU, of others. A name has 15 characters.

namespace gpu_emulator {

inline constexpr char kStatedLoad[] = "gpuw:%u:%u";

// Returns whether the name states a load.
inline bool read_stated_load(const char* name, std::uint64_t* memory_bytes,
                             std::uint32_t* percent) {
  unsigned stated_percent = 0;
  unsigned mib = 0;
  if (sscanf(name, kStatedLoad, &stated_percent, &mib) != 2) return false;
  if (stated_percent > 100 || mib > 999'999) return false;
  *percent = stated_percent;
  *memory_bytes = std::uint64_t{mib} << 20;
  return true;
}

}  // namespace gpu_emulator
