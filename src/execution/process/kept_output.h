#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/ids.h"

// Reading what the platform keeps of a job's output, while the job writes it and ever after.
// Offsets count from the first byte that the attempt printed, dropped parts included. Any thread;
// takes the time of a local file read.

namespace gpu_platform::execution {

// Of the file that is written to now; full parts lie beside it, their names begin with this one's.
std::string kept_output_path(const std::string& folder, model::AttemptId attempt);

struct OutputRange {
  std::uint64_t offset =
      0;              // of the first byte; past the one asked for where older output was dropped
  std::string bytes;  // empty: nothing there yet
};

// At most `most` bytes from `offset` on. Output that does not exist (yet) is an empty range.
base::Result<OutputRange> read_kept_output(const std::string& path, std::uint64_t offset,
                                           std::size_t most);

}  // namespace gpu_platform::execution
