#include "node/supervisor/job_steps.h"

#include "node/site_hooks.h"

namespace gpu_platform::node {

std::vector<std::string_view> JobSteps::command_of(JobStep step) const {
  if (step == JobStep::kCommand) return {};
  return {step == JobStep::kProlog ? request_.prolog : request_.epilog};
}

std::vector<std::string> JobSteps::environment_of(JobStep step, const EndRecord& end) {
  std::vector<std::string> environment;
  if (step == JobStep::kEpilog) add_end(end, environment);
  return environment;
}

std::string JobSteps::told(JobStep step, const std::string& what) {
  if (step == JobStep::kCommand) return what;
  return (step == JobStep::kProlog ? "its prolog: " : "its epilog: ") + what;
}

}  // namespace gpu_platform::node
