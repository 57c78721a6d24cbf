#include "cli/commands.h"
#include "cli/commands/gpu_orders.h"

// gpu-platform health check: of GPUs, or of all GPUs of nodes, without a reset.

namespace gpu_platform::cli {

int run_health_check(const CommandText& text, Invocation& invocation) {
  return run_gpu_order(text, invocation,
                       {.target = "/v1/gpus/check",
                        .noun = "check",
                        .done = "checked",
                        .to_wait = "as --when-empty, and return when the GPUs are checked: with 0 "
                                   "if all are back in service",
                        .may_be_deep = true});
}

}  // namespace gpu_platform::cli
