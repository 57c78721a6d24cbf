#include "controller/judge/raising.h"

#include <algorithm>
#include <vector>

#include "controller/judge/job_actions.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

using model::Job;
using model::JobId;
using model::JobSpec;

namespace {

std::unexpected<base::Error> has_no_place(const Job& job) {
  const bool has_ended = model::is_ended(job.state);
  const bool is_held = job.state == model::JobState::kHeld;
  std::string_view why = "it has no place in the queue";
  if (has_ended) why = "'jobs rerun' submits it again";
  if (is_held) why = "it has no place in the queue until it is released";
  if (job.state == model::JobState::kPending)
    why = "it has no place in the queue until it is QUEUED";
  return base::fail(base::ErrorCode::kFailedPrecondition,
                    fmt::format("job {} is {}; only a QUEUED job can be raised: {}",
                                model::name_of(job), to_string(job.state), why),
                    "id");
}

// The jobs of the command that are in the queue, ascending; the refusal of the first if none is.
base::Result<std::vector<JobId>> jobs_to_raise(const State& state, const model::Caller& caller,
                                               const model::RaiseJob& command) {
  std::vector<JobId> named{command.job};
  if (command.whole_array) {
    TRY_ASSIGN(named, members_for(state, caller, command.job));
  }
  std::vector<JobId> raised;
  for (const JobId id : named) {
    TRY_ASSIGN(const Job* job, find_for(state, caller, id));
    if (job->state == model::JobState::kQueued) raised.push_back(id);
  }
  if (raised.empty()) return has_no_place(*find_job(state, named.front()));
  return raised;
}

bool are_ordered_together(const JobSpec& a, const JobSpec& b) {
  return a.uid == b.uid && a.user == b.user && a.team == b.team &&
         a.priority.priority_class == b.priority.priority_class;
}

}  // namespace

base::Result<std::optional<model::JobsRaised>> judge_raise(const State& state,
                                                           const model::Caller& caller,
                                                           const model::RaiseJob& command) {
  TRY_ASSIGN(std::vector<JobId> raised, jobs_to_raise(state, caller, command));
  // Members share a specification unless they were changed one by one.
  const JobSpec& first = *find_job(state, raised.front())->spec;
  std::erase_if(raised, [&](JobId id) {
    const Job& job = *find_job(state, id);
    return job.overdue_since.is_set() || !are_ordered_together(*job.spec, first);
  });
  const auto is_raised = [&](JobId id) { return std::ranges::binary_search(raised, id); };
  std::vector<JobId> in_order;
  std::size_t last = 0;  // one past the last that is raised
  std::size_t met = 0;
  state.books->queue.for_each_while([&](const scheduling::WaitingJob& job) {
    if (met == raised.size()) return false;
    if (job.overdue_since.is_set() || !are_ordered_together(*job.spec, first)) return true;
    in_order.push_back(job.id);
    if (is_raised(job.id)) {
      ++met;
      last = in_order.size();
    }
    return true;
  });
  if (last == raised.size()) return std::nullopt;  // none is before them
  const JobId foremost = raised.front();
  return model::JobsRaised{foremost, std::move(raised), std::move(in_order), caller.user};
}

}  // namespace gpu_platform::controller
