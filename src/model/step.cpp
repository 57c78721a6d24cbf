#include "model/step.h"

#include <algorithm>
#include <utility>

namespace gpu_platform::model {

namespace {

JobSteps::const_iterator step_place(const JobSteps& steps, std::uint32_t number) {
  return std::ranges::lower_bound(steps, number, {},
                                  [](const base::Shared<JobStep>& step) { return step->number; });
}

}  // namespace

const JobStep* find_step(const JobSteps& steps, std::uint32_t number) {
  const auto found = step_place(steps, number);
  return found != steps.end() && (*found)->number == number ? &**found : nullptr;
}

JobSteps with_step(const JobSteps& steps, JobStep step) {
  const auto place = step_place(steps, step.number);
  const auto rest = place != steps.end() && (*place)->number == step.number ? place + 1 : place;
  JobSteps result;
  result.reserve(steps.size() + 1);
  result.assign(steps.begin(), place);
  result.emplace_back(std::move(step));
  result.insert(result.end(), rest, steps.end());
  return result;
}

JobSteps with_ends(const JobSteps& steps, base::Instant ended_at) {
  JobSteps result = steps;
  for (base::Shared<JobStep>& step : result) {
    if (step->ended_at.is_set()) continue;
    JobStep ended = *step;
    ended.ended_at = std::max(ended_at, ended.started_at);
    ended.exit.lost = Lost::kUnknown;
    step = std::move(ended);
  }
  return result;
}

}  // namespace gpu_platform::model
