#include "node/supervisor/job_steps.h"

#include "node/site_hooks.h"

namespace gpu_platform::node {

std::vector<std::string_view> command_of(const LaunchRequest& request, JobStep step) {
  if (step == JobStep::kCommand) return {};
  return {step == JobStep::kProlog ? request.prolog : request.epilog};
}

std::vector<std::string> environment_of(JobStep step, const EndRecord& end) {
  std::vector<std::string> environment;
  if (step == JobStep::kEpilog) add_end(end, environment);
  return environment;
}

}  // namespace gpu_platform::node
