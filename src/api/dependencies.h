#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/call_context.h"
#include "base/result.h"
#include "model/command.h"
#include "model/dependency.h"

namespace gpu_platform::api {

// Looks up the jobs that a command names. The core judges the jobs that it knows; for jobs that
// have left it, the command carries what the archive says.
struct ResolvedDependencies {
  std::vector<model::Dependency> asked;
  std::vector<model::EndedTarget> ended;
};

// `text` as in JobSpec.dependency. kNotFound for jobs that the caller may not see. Takes
// the time of a local query for each job that has left the core.
base::Result<ResolvedDependencies> resolve_dependencies(const JobReader& reader,
                                                        const model::Caller& caller,
                                                        std::string_view text);

// A command that names other jobs.
struct DependentCommand {
  std::string dependency;  // as in JobSpec
  model::Caller caller;
  std::function<model::Command(ResolvedDependencies)> make;
  int looks = 3;  // at most, for the jobs that it names
};
// Looks up the jobs, and again if one of them leaves the core before the core looks. Then as
// CallContext::send.
void send_with_dependencies(const CallContext& context, DependentCommand dependent, Resume resume,
                            CallContext::Finish finish);

}  // namespace gpu_platform::api
