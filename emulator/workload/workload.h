#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "tool/state_file.h"

// A program's use of emulated GPUs: the GPUs that it may see, and its use of them over time.

namespace gpu_emulator {

enum class CurveKind { kConstant, kRamp, kSine };

// Utilization over time: `peak` all the time; from 0 to `peak` in one period, then as it is; or
// from 0 to `peak` and back once in each period.
struct Curve {
  CurveKind kind = CurveKind::kConstant;
  std::uint32_t peak_percent = 0;
  gpu_platform::base::Duration period;  // positive; unused by a constant
};

// Memory over time: the first bytes, and a step more after each time, up to the maximum.
struct MemorySteps {
  std::uint64_t first_bytes = 0;
  std::uint64_t step_bytes = 0;             // 0: it does not grow
  gpu_platform::base::Duration every = {};  // positive; unused without steps
  std::optional<std::uint64_t> max_bytes = {};
};
std::uint64_t memory_at(const MemorySteps& memory, gpu_platform::base::Duration elapsed);

Result<CurveKind> parse_curve(const std::string& name);
std::uint32_t utilization_at(const Curve& curve, gpu_platform::base::Duration elapsed);

// Returns the GPUs that a program may know of, by their index on the board: all of them, or those
// that have a device node `folder`/nvidiaN (GPU_EMULATOR_DEVICES), as a container has them.
std::vector<std::uint32_t> known_gpus(const BoardState& state, const char* folder);

// Returns the GPUs that CUDA_VISIBLE_DEVICES names, in its order and by its rules: UUIDs (or
// beginnings of them that fit one GPU alone) and indices, separated by commas. Nothing means all
// GPUs, if it is not set; an empty value means none. A wrong entry, at which CUDA would silently
// stop, is an error here. `known`: the GPUs that there are for the program, and index N means the
// N-th of them.
Result<std::vector<std::uint32_t>> visible_gpus(const BoardState& state,
                                                std::optional<std::string_view> visible_devices,
                                                const std::vector<std::uint32_t>& known);

}  // namespace gpu_emulator
