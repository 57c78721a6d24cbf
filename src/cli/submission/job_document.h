#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu_platform/v1/jobs.pb.h"

// Jobs in YAML or JSON documents: for `submit -f`.

namespace gpu_platform::cli {

// Returns the jobs of all documents. A document is either the fields of a job's specification, or
// what `jobs describe -o yaml` prints, of which "spec" counts: the other fields of a job, and the
// request id of the earlier submission, are left out. Sizes and times may be texts, as in
// `memory_bytes: 64G` and `time_limit_seconds: 2h`. Errors name the line; unknown fields are
// refused.
base::Result<std::vector<v1::JobSpec>> read_job_documents(std::string_view text);

}  // namespace gpu_platform::cli
