#include "controller/apply/attempt_limits.h"

#include <optional>

#include "controller/apply/borrowing.h"
#include "controller/job_budget.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

using model::Attempt;
using model::Job;

namespace {

std::optional<base::Duration> limit_from_start(const State& state, const Job& job,
                                               const Attempt& attempt) {
  const bool has_started = attempt.started_at.is_set();
  return limit_by_budget(state, job, attempt,
                         has_started ? attempt.started_at : attempt.requested_at);
}

void shorten_limit(Application& a, model::AttemptId id) {
  if (!find_job(a.state, id.job)->spec->budget) return;
  Job& j = a.job(id.job);
  Attempt& attempt = find_attempt(j, id);
  if (!model::may_have_processes(attempt.state)) return;
  const auto limit = limit_from_start(a.state, j, attempt);
  if (!limit || *limit >= attempt.limit_by_budget.value_or(*limit + base::seconds(1))) return;
  note_changes(a, a.state.books.discount(j, attempt));
  attempt.is_borrowed = false;
  attempt.limit_by_budget = limit;
  a.state.relimited.insert(id);
  note_changes(a, a.state.books.count(j, attempt));
  a.state.books.update_held(j, attempt);
}

}  // namespace

void limit_anew(Application& a, const Job& job, Attempt& attempt) {
  attempt.limit_by_budget = limit_from_start(a.state, job, attempt);
}

void shorten_limits(Application& a) {
  for (const model::AttemptId id : a.state.held_attempts) shorten_limit(a, id);
}

}  // namespace gpu_platform::controller
