#pragma once

#include <string>

#include "cli/screen/watch_view.h"

// The jobs of `watch` as lines of text.

namespace gpu_platform::cli {

// A line for each running job that the filter finds, in the order of the arrangement, and one for
// each waiting job, in the order of the queue. `style` without graphs is enough.
WatchTable watch_jobs(const WatchView& view, const WatchArrangement& arrangement,
                      const WatchStyle& style);

}  // namespace gpu_platform::cli
