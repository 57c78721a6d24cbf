#include "controller/apply/application.h"

#include "base/check.h"

namespace gpu_platform::controller {

model::Job& Application::job(model::JobId id) {
  model::Job* found = state.jobs.find_mutable(id.value);
  CHECK(found != nullptr);
  return *found;
}

model::Node& Application::node(model::NodeId id) {
  model::Node* found = state.nodes.find_mutable(id.value);
  CHECK(found != nullptr);
  return *found;
}

model::Attempt& find_attempt(model::Job& job, model::AttemptId id) {
  CHECK(id.attempt >= 1 && id.attempt <= job.attempts.size());
  return job.attempts[id.attempt - 1];
}

void end_steps(model::Attempt& attempt) {
  if (attempt.steps->empty()) return;
  attempt.steps = model::with_ends(*attempt.steps, attempt.ended_at);
}

void move_attempt(model::Attempt& attempt, model::AttemptTrigger trigger) {
  const auto to = model::next(attempt.state, trigger);
  CHECK(to.has_value());
  attempt.state = *to;
}

void move_holders(Application& a, model::AttemptId id, const model::Attempt& attempt) {
  const model::HolderPhase phase = model::phase_of(attempt);
  for (const auto& part : attempt.allocation.nodes) {
    model::Node& n = a.node(part.node);
    for (const auto& grant : part.grants) {
      CHECK(model::set_phase(n.gpus.at(grant.gpu_index), id, phase));
    }
    a.state.books.put(n);
  }
}

}  // namespace gpu_platform::controller
