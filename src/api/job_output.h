#pragma once

#include <cstdint>
#include <functional>

#include "api/core_access.h"
#include "api/resume.h"
#include "host/slow_calls.h"

namespace gpu_platform::api {

// Reads the output of jobs without ever waiting for a file of a user. Such files are read on
// threads of their own, with a bound for each owner and a deadline. Safe from any thread.
class JobOutput {
 public:
  explicit JobOutput(const OutputSource& source) : source_(source) {}

  struct Range {
    std::uint64_t offset = 0;
    std::size_t most = 0;
  };
  using Done = std::function<void(base::Result<OutputPiece>)>;

  // Reads across the ends of rotated files until the range is complete or there is no more. `done`
  // is called at once for output that the platform keeps, and through `resume` for a user's file.
  void read(const model::Job& job, std::uint32_t attempt, Range range, const Resume& resume,
            Done done) const;

 private:
  const OutputSource& source_;
  mutable host::SlowCalls calls_{"the file system of the job's output", {}};
};

}  // namespace gpu_platform::api
