#pragma once

#include <cstdint>
#include <vector>

#include "tool/state_file.h"

// A program's presence on emulated GPUs, by the environment that CUDA programs have.

namespace gpu_emulator {

struct OpenBoard {
  StateFile file;
  bool is_ours = true;  // to change
};

// Opens the board of GPU_EMULATOR_STATE. A board of another user's daemon is told of this process
// by that daemon, which reads the load in the process's name.
Result<OpenBoard> open_used_board();

// A GPU, or the one compute instance of it that a program uses.
struct UsedGpu {
  std::uint32_t gpu = 0;
  InstanceId instance = {};
};

// Returns the GPUs that CUDA_VISIBLE_DEVICES names, at least one. Like CUDA, a program uses one MIG
// instance: the first that is named by its UUID ("MIG-…"), or the first of a GPU in MIG mode.
Result<std::vector<UsedGpu>> gpus_to_use(const StateFile& file);

// Is on its GPUs from the first set() to destruction. It refers to what it was given.
class GpuUse {
 public:
  GpuUse(OpenBoard& board, const std::vector<UsedGpu>& gpus)
      : file_(board.file), is_ours_(board.is_ours), gpus_(gpus) {}
  GpuUse(const GpuUse&) = delete;
  GpuUse& operator=(const GpuUse&) = delete;
  // An entry that cannot be removed any more (the node was made again) ends with the process.
  ~GpuUse();

  // Enters the process on each of its GPUs, or changes its entries.
  Status set(std::uint64_t memory_bytes, std::uint32_t percent);

 private:
  StateFile& file_;
  const bool is_ours_;
  const std::vector<UsedGpu>& gpus_;
};

}  // namespace gpu_emulator
