#pragma once

#include <string_view>
#include <vector>

#include "api/job_reader.h"
#include "base/result.h"
#include "model/command.h"
#include "model/dependency.h"

namespace gpu_platform::api {

// What a command tells the core of the jobs that it names: those that the core knows it judges
// itself; of those that have left it, what the archive says.
struct ResolvedDependencies {
  std::vector<model::Dependency> asked;
  std::vector<model::EndedTarget> ended;
};

// `text` as in JobSpec.dependency. kNotFound for jobs that the caller may not see. Takes
// the time of a local query for each job that has left the core.
base::Result<ResolvedDependencies> resolve_dependencies(const JobReader& reader,
                                                        const model::Caller& caller,
                                                        std::string_view text);

}  // namespace gpu_platform::api
