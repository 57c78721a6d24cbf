#include "api/job_reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/convert/enums.h"
#include "api/convert/job_change.h"
#include "api/convert/job_spec.h"
#include "api/convert/use.h"
#include "api/job_names.h"
#include "api/predictions.h"
#include "base/parse.h"
#include "model/access.h"
#include "model/job_spec.h"
#include "views/planned_starts.h"
#include "views/predicted_starts.h"

namespace gpu_platform::api {

namespace {

void add_planned_start(const views::PlannedStarts& planned_starts, model::JobId job, v1::Job& out) {
  const auto planned = planned_starts.find(job);
  if (planned != planned_starts.end()) to_proto(planned->second, *out.mutable_estimated_start());
}

// What visibility.commands is about.
void hide_command(v1::JobSpec& spec) {
  spec.clear_command();
  spec.clear_workdir();
  spec.clear_output();
  spec.clear_error();
  spec.clear_prolog();
  spec.clear_epilog();
}

}  // namespace

bool is_explained(model::JobState state) {
  return model::is_waiting(state) || state == model::JobState::kHeld;
}

base::Status check_is_one(const FoundJob& found) {
  if (!found.whole_array) return {};
  return base::fail(
      base::ErrorCode::kFailedPrecondition,
      fmt::format("job {} is an array of {}: name a member, as in {}", found.job->id.value,
                  member_count(*found.job->spec->array), name_of(*found.job)),
      "id");
}

namespace {

// The same for a job that never was, that the caller may not see, and that has left the history.
std::unexpected<base::Error> no_such_job(model::JobId id, const model::Policy& policy) {
  std::string text = fmt::format("there is no job {}", id.value);
  if (policy.job_keep != base::Duration()) {
    text += fmt::format("; an ended job leaves the history after {} here (store.job_keep)",
                        base::written(policy.job_keep));
  } else if (policy.max_ended_jobs != 0) {
    text += fmt::format("; the history has the last {} ended jobs (store.max_ended_jobs)",
                        policy.max_ended_jobs);
  }
  return base::fail(base::ErrorCode::kNotFound, std::move(text), "id");
}

}  // namespace

base::Result<ListFilter> to_model(const v1::ListJobsRequest& request, const model::Caller& caller) {
  ListFilter filter;
  if (request.has_user()) {
    filter.user = request.user();
  } else if (!request.all() && !request.has_team()) {
    filter.user = caller.user;
  }
  if (request.has_team()) filter.team = request.team();
  if (request.has_name()) filter.name = request.name();
  for (const int state : request.state()) {
    filter.states.push_back(to_model(static_cast<v1::JobState>(state)));
  }
  for (const std::string& label : request.label()) {
    TRY_ASSIGN(auto parsed, to_label(label));
    filter.labels.push_back(std::move(parsed));
  }
  if (request.has_name_pattern()) filter.name_pattern = request.name_pattern();
  if (request.has_node()) filter.node = request.node();
  if (request.has_since()) filter.since = to_model(request.since());
  if (request.has_until()) filter.until = to_model(request.until());
  if (request.has_limit()) filter.limit = request.limit();
  if (request.has_page_token()) {
    const auto before = to_job_id(request.page_token());
    if (!before) {
      return base::invalid("page_token", "page_token: must be the next_page of an earlier answer");
    }
    filter.before = *before;
  }
  filter.with_steps = request.steps();
  filter.with_gpu_use = request.gpu_use();
  filter.with_cost = request.cost();
  filter.with_ended =
      request.all() || request.ended() || std::ranges::any_of(filter.states, model::is_ended);
  return filter;
}

base::Result<FoundJob> JobReader::find(const model::Caller& caller, model::JobId id) const {
  FoundJob found{core_.snapshots.snapshot(), nullptr, nullptr};
  found.job = found.snapshot->jobs.find(id.value);
  if (found.job == nullptr) {
    TRY_ASSIGN(std::optional<model::Job> archived, core_.archive.find(id));
    if (archived) {
      found.archived = std::make_shared<const model::Job>(*std::move(archived));
      found.job = found.archived.get();
    }
  }
  const bool is_seen =
      found.job != nullptr && (found.job->spec->uid == caller.uid ||
                               view_of(caller).sees(model::Sight::kJobs, *found.job->spec));
  if (!is_seen) {
    return no_such_job(id, *found.snapshot->policy);
  }
  return found;
}

base::Result<FoundJob> JobReader::find(const model::Caller& caller, const JobRef& ref) const {
  TRY_ASSIGN(FoundJob found, find(caller, ref.job));
  const model::Job& job = *found.job;
  const bool is_first = job.array_id == job.id && job.spec->array.has_value();
  if (!ref.index) {
    found.whole_array = is_first;
    return found;
  }
  const auto position = is_first ? model::position_of(*job.spec->array, *ref.index) : std::nullopt;
  if (!position) {
    return base::fail(base::ErrorCode::kNotFound,
                      fmt::format("there is no job {}_{}", ref.job.value, *ref.index), "id");
  }
  return find(caller, model::JobId(ref.job.value + *position));
}

base::Result<FoundJob> JobReader::find(const model::Caller& caller, std::string_view text) const {
  TRY_ASSIGN(const JobRef ref, to_job_ref(text));
  return find(caller, ref);
}

base::Result<FoundJob> JobReader::find_to_change(const model::Caller& caller,
                                                 std::string_view text) const {
  TRY_ASSIGN(FoundJob found, find(caller, text));
  TRY(model::check_may_touch(caller, found.job->id, *found.job->spec));
  return found;
}

std::shared_ptr<const model::AccessRules> JobReader::rules() const {
  return core_.access ? core_.access() : root_alone_;
}

base::Status JobReader::check_sees_output(const model::Caller& caller,
                                          const model::Job& job) const {
  if (job.spec->uid == caller.uid) return {};
  if (view_of(caller).sees(model::Sight::kOutput, *job.spec)) return {};
  return base::fail(base::ErrorCode::kPermissionDenied,
                    fmt::format("job {} belongs to another user, and its output is not shown to "
                                "you (access.visibility.output)",
                                name_of(job)),
                    "id");
}

void JobReader::add_gpu_use(const model::Job& job, v1::Job& out) const {
  const model::Attempt* const latest = job.current_attempt();
  if (core_.uses == nullptr || latest == nullptr || latest->allocation.gpu_count() == 0) return;
  const auto brief = core_.uses->brief({job.id, latest->number});
  if (brief) to_proto(*brief, *out.mutable_gpu_use());
}

void JobReader::describe(const model::Caller& caller, const model::Job& job, const Nodes& nodes,
                         v1::Job& out) const {
  describe(view_of(caller), job, nodes, out);
}

void JobReader::describe(const model::View& view, const model::Job& job, const Nodes& nodes,
                         v1::Job& out) const {
  to_proto(*job.spec, nodes, *out.mutable_spec());
  describe_without_spec(view, job, nodes, out);
  if (!view.sees(model::Sight::kCommands, *job.spec)) hide_command(*out.mutable_spec());
}

void JobReader::describe_without_spec(const model::View& view, const model::Job& job,
                                      const Nodes& nodes, v1::Job& out) const {
  to_proto_without_spec(job, nodes, out);
  // A pod's job starts when its container runs; one in a container of this host, with its process.
  const bool may_prepare =
      job.state == model::JobState::kStarting || job.state == model::JobState::kRunning;
  const bool has_steps = !job.spec->image.empty() || job.spec->preflight != model::Preflight::kNone;
  if (may_prepare && has_steps && !job.attempts.empty()) {
    const std::string step = core_.outputs.container_step(job, job.attempts.back().number);
    if (!step.empty()) out.set_detail(step);
  }
  if (job.attempts.empty() || !view.sees(model::Sight::kCommands, *job.spec)) return;
  out.set_output(core_.outputs.path(job, job.attempts.back().number));
}

void JobReader::explain(const model::Caller& caller, const FoundJob& found, v1::Job& out) const {
  if (!is_explained(found.job->state)) return;
  const JobNames names(found.snapshot, view_of(caller));
  if (found.job->state != model::JobState::kQueued) {
    return to_proto(explainer(found.snapshot)->explain(*found.job), names,
                    *out.mutable_wait_reason());
  }
  const views::PlaceInLine line = planner_.place_in_line(found.snapshot, found.job->id);
  to_proto(planner_.wait_reason(found.snapshot, *found.job, line), names,
           *out.mutable_wait_reason());
  add_planned_start(views::last_planned_starts(*found.snapshot), found.job->id, out);
  out.set_start_guaranteed(views::guaranteed_start(*found.snapshot) == found.job->id);
  out.set_queue_position(line.jobs_ahead + 1);
}

QueueStarts JobReader::starts_of_queue(const std::shared_ptr<const controller::Snapshot>& snapshot,
                                       bool of_all) const {
  const model::JobId guaranteed = views::guaranteed_start(*snapshot);
  if (!of_all) return {views::last_planned_starts(*snapshot), {}, {}, guaranteed};
  return {planner_.planned_starts(snapshot), planner_.predicted_starts(snapshot),
          snapshot->scores->calibration().corrections(), guaranteed};
}

std::unique_ptr<v1::Job> QueueStarts::of(model::JobId job) const {
  const auto planned = planned_starts.find(job);
  const auto start = predicted.prediction.starts.find(job);
  const bool is_planned = planned != planned_starts.end();
  const bool is_predicted = start != predicted.prediction.starts.end();
  if (!is_planned && !is_predicted) return nullptr;
  auto out = std::make_unique<v1::Job>();
  if (is_planned) to_proto(planned->second, *out->mutable_estimated_start());
  out->set_start_guaranteed(job == guaranteed);
  // No longer in the queue of the prediction, or asked without one.
  const auto ahead = predicted.jobs_ahead.find(job);
  if (ahead == predicted.jobs_ahead.end()) return out;
  const base::Instant by_limits = is_planned ? planned->second : base::Instant();
  if (is_planned && job != guaranteed) {
    const auto trust = corrections.trust_in(by_limits, predicted.made_at, ahead->second);
    if (trust) to_proto(*trust, *out->mutable_estimated_start_trust());
  }
  if (is_predicted) {
    const scheduling::StartQuantiles told = corrections.corrected(
        {predicted.made_at, ahead->second, start->second, by_limits, job == guaranteed});
    to_proto({told, predicted.prediction.basis, predicted.prediction.runs},
             *out->mutable_expected_start());
  }
  return out;
}

}  // namespace gpu_platform::api
