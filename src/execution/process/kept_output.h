#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/ids.h"

// Reads the output of a job that the platform keeps, while the job writes it and afterwards.
// Offsets count from the first byte that the attempt printed, dropped parts included. Any thread;
// takes the time of a local file read.

namespace gpu_platform::execution {

// Returns the path of the present file; full parts lie beside it, with names that begin with its
// name.
std::string kept_output_path(const std::string& folder, model::AttemptId attempt);

// Returns whether there is output of any attempt of the job. True if that cannot be seen.
bool has_kept_output(const std::string& folder, model::JobId job);
// Returns the highest id of a job that has output there; invalid: none has. Costs a look at the
// names of all output.
model::JobId last_kept_output(const std::string& folder);
// Returns whether there is output of the attempt whose present file this is. A supervisor makes
// that file before the job's first process.
bool has_output_files(const std::string& path);

// Returns what the client of a container engine does for the attempt now ("pulling the image,
// 43 %"); empty: the container runs, or there is none.
std::string container_step(const std::string& folder, model::AttemptId attempt);

struct OutputRange {
  std::uint64_t offset =
      0;              // of the first byte; past the one asked for where older output was dropped
  std::string bytes;  // empty: nothing there yet
};

// Returns at most `most` bytes from `offset` on. Output that does not exist (yet) is an empty
// range.
base::Result<OutputRange> read_kept_output(const std::string& path, std::uint64_t offset,
                                           std::size_t most);

}  // namespace gpu_platform::execution
