#include "controller/judge/idle.h"

#include <utility>

#include "model/job_spec.h"

namespace gpu_platform::controller {

Events judge_idle(const State& state, const execution::AllocationIdle& seen) {
  const model::Attempt* const attempt = find_attempt(state, seen.attempt);
  if (attempt == nullptr || attempt->state != model::AttemptState::kRunning) return {};
  const model::Job& job = *state.jobs.find(seen.attempt.job.value);
  model::AuditedCall call;
  call.by.user = "gpu-platform";
  call.action = model::AuditAction::kStopIdle;
  call.owner = {job.spec->user, job.spec->uid};
  call.jobs = {job.id};
  call.job_count = 1;
  call.target = seen.detail;
  Events events;
  events.push_back(model::StopRequested{seen.attempt, model::EndReason::kIdle, false, {}});
  events.push_back(model::CallAudited{std::move(call)});
  return events;
}

}  // namespace gpu_platform::controller
