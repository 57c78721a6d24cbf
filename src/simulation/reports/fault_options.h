#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "simulation/faults/run_faults.h"

namespace gpu_platform::simulation {

// The options of `gpu-platform simulate faults` as the user wrote them; those not given are absent.
struct FaultOptionTexts {
  std::optional<std::string> seeds;
  std::optional<std::string> first_seed;
  std::optional<std::string> plant;
};

// An error names the option in its field. Both numbers are limited so that the last seed is still a
// 64-bit number.
base::Result<FaultOptions> read_fault_options(const FaultOptionTexts& texts);

}  // namespace gpu_platform::simulation
