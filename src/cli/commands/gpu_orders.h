#pragma once

#include <string_view>

#include "cli/commands.h"

// Orders to reset GPUs or to check them, and the wait for their ends: `reset` and `health check`.

namespace gpu_platform::cli {

// How one of the two is told and where it is sent.
struct GpuOrderWords {
  std::string_view target;   // "/v1/gpus/reset"
  std::string_view noun;     // "reset"
  std::string_view done;     // of the GPUs: "reset"
  std::string_view to_wait;  // help of --wait
  bool may_be_deep = false;
};

// Reads the options, asks where several GPUs are meant, sends the orders and waits if that is asked
// for. Returns the exit code.
int run_gpu_order(const CommandText& text, Invocation& invocation, const GpuOrderWords& words);

}  // namespace gpu_platform::cli
