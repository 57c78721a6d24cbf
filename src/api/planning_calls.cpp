#include "api/planning_calls.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "api/call_context.h"
#include "api/convert/job.h"
#include "api/convert/model_sizing.h"
#include "api/job_names.h"
#include "api/predictions.h"
#include "api/submission.h"
#include "model/job_spec.h"
#include "views/job_budget.h"

namespace gpu_platform::api {

namespace {

// The types of GPU that the nodes report, the smallest memory first.
std::vector<sizing::GpuKind> gpu_kinds(const controller::Snapshot& snapshot) {
  std::map<std::string, sizing::GpuKind> by_type;
  snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    std::map<std::string, std::uint32_t> on_this_node;
    for (const model::Gpu& gpu : node.gpus) {
      if (!gpu.is_reported) continue;
      const model::GpuInfo& info = gpu.info;
      sizing::GpuKind first{.name = info.type, .memory = info.memory, .on_a_node = 1};
      auto& kind = by_type.try_emplace(info.type, std::move(first)).first->second;
      kind.memory = std::min(kind.memory, info.memory);
      kind.on_a_node = std::max(kind.on_a_node, ++on_this_node[info.type]);
    }
  });
  std::vector<sizing::GpuKind> kinds;
  for (const auto& [type, kind] : by_type) kinds.push_back(kind);
  std::ranges::stable_sort(kinds, {}, &sizing::GpuKind::memory);
  return kinds;
}

void put_all(const std::vector<scheduling::Counterfactual>& found,
             google::protobuf::RepeatedPtrField<v1::Counterfactual>& out) {
  for (const scheduling::Counterfactual& each : found) {
    v1::Counterfactual& message = *out.Add();
    message.set_change(std::string(to_string(each.change)));
    message.set_option(option_of(each));
  }
}

using NameMap = google::protobuf::Map<std::string, std::string>;

void put(const views::PlannedStartDetail& planned, const Nodes& nodes, const JobNames& names,
         v1::PlannedStart& out, NameMap& named) {
  api::to_proto(planned.start, *out.mutable_start());
  out.set_basis("hard_limits");
  add_place(planned.allocation, nodes, *out.mutable_nodes(), *out.mutable_gpus());
  out.set_hidden_after(names.add(planned.after, *out.mutable_after_jobs(), named));
  if (planned.trust) api::to_proto(*planned.trust, *out.mutable_trust());
}

// Returns the prediction for the present run, or for the next one.
std::optional<scheduling::PredictedRun> predicted_run_of(const model::Job& job,
                                                         const controller::Snapshot& snapshot) {
  if (model::is_ended(job.state)) return std::nullopt;
  base::Duration elapsed;
  const model::Attempt* attempt = job.current_attempt();
  if (model::is_active(job.state) && attempt->started_at.is_set()) {
    const base::Duration ran = std::max(snapshot.at - attempt->started_at, base::Duration());
    elapsed = scheduling::at_full_speed(ran, attempt->allocation.speed);
  }
  return scheduling::predicted_run(*job.spec, elapsed, *snapshot.runs);
}

// Names the jobs before it that the caller may see, and counts the others.
void put_line(const JobReader& reader, const views::PlaceInLine& line, model::JobId job,
              const JobNames& names, v1::Explanation& out) {
  out.set_jobs_ahead(line.jobs_ahead);
  names.add(line.first_ahead, *out.mutable_first_ahead(), *out.mutable_names());
  std::uint64_t hidden = 0;
  const auto explainer = reader.explainer(names.snapshot());
  for (const model::JobId ahead : explainer->order()) {
    if (ahead == job) break;
    hidden += names.is_hidden(ahead) ? 1 : 0;
  }
  out.set_hidden_ahead(hidden);
}

// The names of the jobs that the job itself tells of: what it waited for, passed and replaced.
void put_names_of(const v1::Job& job, const JobNames& names, NameMap& named) {
  names.add_names(job.forecast().after_jobs(), named);
  if (job.attempts().empty()) return;
  const v1::Attempt& last = *job.attempts().rbegin();
  names.add_names(last.preempted_jobs(), named);
  if (!last.passed().empty()) names.add_name(last.passed(), named);
}

void put_planned_start(const views::Explanation& found, const controller::Snapshot& snapshot,
                       const JobNames& names, v1::CheckResult& out) {
  out.set_jobs_ahead(found.line.jobs_ahead);
  if (!found.planned) return;
  api::to_proto(found.planned->start, *out.mutable_estimated_start());
  out.set_hidden_after(
      names.add(found.planned->after, *out.mutable_after_jobs(), *out.mutable_names()));
  if (found.planned->trust) {
    api::to_proto(*found.planned->trust, *out.mutable_estimated_start_trust());
  }
  add_place(found.planned->allocation, snapshot.nodes, *out.mutable_nodes(), *out.mutable_gpus());
}

v1::CheckResult never(const base::Error& error) {
  v1::CheckResult out;
  out.set_never(true);
  out.add_reasons(error.message);
  return out;
}

// To the user who would submit it.
JobNames names_for(const JobReader& reader, const model::Job& job,
                   const Planner::Snapshot& snapshot) {
  model::Caller caller;
  caller.user = job.spec->user;
  caller.uid = job.spec->uid;
  return {snapshot, reader.view_of(caller)};
}

v1::CheckResult check_kept_back(const JobReader& reader, const model::Job& job,
                                const Planner::Snapshot& snapshot) {
  v1::CheckResult out;
  if (!job.dependency_failure.empty()) {
    out.set_never(true);
    out.add_reasons(job.dependency_failure);
    return out;
  }
  const JobNames names = names_for(reader, job, snapshot);
  out.add_reasons(describe(reader.explainer(snapshot)->explain(job), names));
  // The success of other jobs, and the release by a person, cannot be predicted.
  if (job.state == model::JobState::kHeld || !job.waits_for.empty()) return out;
  put_planned_start(reader.planner().plan_new(snapshot, job.spec), *snapshot, names, out);
  return out;
}

v1::CheckResult check_queued(const JobReader& reader, const model::Job& job,
                             const Planner::Snapshot& snapshot) {
  const views::Explanation found = reader.planner().explain(snapshot, job.spec);
  const JobNames names = names_for(reader, job, snapshot);
  v1::CheckResult out;
  out.set_starts_now(found.starts_now.has_value());
  put_planned_start(found, *snapshot, names, out);
  if (found.starts_now) {
    add_place(*found.starts_now, snapshot->nodes, *out.mutable_nodes(), *out.mutable_gpus());
  } else {
    out.add_reasons(describe(reader.planner().wait_reason(snapshot, *job.spec, found.line), names));
  }
  if (found.preemption) {
    for (const model::AttemptId id : found.preemption->victims) {
      out.add_stopped_jobs(std::to_string(id.job.value));
    }
    names.add_names(out.stopped_jobs(), *out.mutable_names());
  }
  if (found.predicted) api::to_proto(*found.predicted, *out.mutable_predicted_start());
  put_all(found.counterfactuals, *out.mutable_counterfactuals());
  return out;
}

}  // namespace

base::Result<v1::Explanation> PlanningCalls::explain(const v1::ExplainJobRequest& request,
                                                     const Peer& peer) const {
  TRY_ASSIGN(const FoundJob found, context_.reader.find(peer.caller, request.id()));
  const model::JobId id = found.job->id;
  v1::Explanation out;
  context_.reader.describe(peer.caller, *found.job, found.snapshot->nodes, *out.mutable_job());
  context_.reader.explain(peer.caller, found, *out.mutable_job());
  const JobNames names(found.snapshot, context_.reader.view_of(peer.caller));
  put_names_of(out.job(), names, *out.mutable_names());
  add_scores(*found.snapshot, *out.mutable_scores());
  if (const auto run = predicted_run_of(*found.job, *found.snapshot)) {
    to_proto(*run, *out.mutable_predicted_run());
  }
  if (found.job->state != model::JobState::kQueued) return out;
  const auto effort = request.thorough() ? views::Effort::kThorough : views::Effort::kQuick;
  const views::Explanation explanation =
      context_.reader.planner().explain(found.snapshot, id, effort);
  put_line(context_.reader, explanation.line, id, names, out);
  if (explanation.planned) {
    put(*explanation.planned, found.snapshot->nodes, names, *out.mutable_planned_start(),
        *out.mutable_names());
  }
  if (explanation.predicted) to_proto(*explanation.predicted, *out.mutable_predicted_start());
  out.set_too_many_ahead(explanation.too_many_ahead);
  put_all(explanation.counterfactuals, *out.mutable_counterfactuals());
  return out;
}

void PlanningCalls::judge(const v1::JobSpec& request, const Peer& peer, Resume resume,
                          std::function<void(Accepted)> done) const {
  send_submission(context_, {.spec = request, .dry_run = true}, peer, std::move(resume),
                  [done = std::move(done)](base::Result<model::CommandReply> reply) {
                    if (!reply) return done(std::unexpected(std::move(reply).error()));
                    done(std::move(reply->accepted));
                  });
}

v1::CheckResult PlanningCalls::check(const model::Job& job) const {
  const auto snapshot = context_.core.snapshots.snapshot();
  v1::CheckResult out = job.state == model::JobState::kQueued
                            ? check_queued(context_.reader, job, snapshot)
                            : check_kept_back(context_.reader, job, snapshot);
  if (std::string note = views::budget_note(*snapshot, *job.spec); !note.empty()) {
    out.add_notes(std::move(note));
  }
  if (job.spec->array) out.set_members(model::member_count(*job.spec->array));
  if (const auto run = scheduling::predicted_run(*job.spec, {}, *snapshot->runs)) {
    to_proto(*run, *out.mutable_predicted_run());
  }
  return out;
}

base::Result<v1::CheckResult> PlanningCalls::check_refused(const base::Error& error) {
  if (error.code != base::ErrorCode::kFailedPrecondition) return std::unexpected(error);
  return never(error);
}

base::Result<v1::Needs> PlanningCalls::size_model_server(
    const v1::ModelSizingRequest& request) const {
  return api::size_model_server(request, gpu_kinds(*context_.core.snapshots.snapshot()));
}

}  // namespace gpu_platform::api
