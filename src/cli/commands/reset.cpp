#include "cli/commands.h"
#include "cli/commands/gpu_orders.h"

// gpu-platform reset: of GPUs, or of all GPUs of nodes.

namespace gpu_platform::cli {

int run_reset(const CommandText& text, Invocation& invocation) {
  return run_gpu_order(
      text, invocation,
      {.target = "/v1/gpus/reset",
       .noun = "reset",
       .done = "reset",
       .to_wait = "as --when-empty, and return when the GPUs are reset and checked: with 0 if all "
                  "are back in service"});
}

}  // namespace gpu_platform::cli
