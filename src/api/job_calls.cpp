#include <fmt/format.h>

#include "api/calls.h"
#include "api/convert/enums.h"
#include "api/convert/job_change.h"
#include "api/convert/job_step.h"

// Calls that change jobs which are there.

namespace gpu_platform::api {

namespace {

bool stops(model::JobAction action) {
  return action == model::JobAction::kCancel || action == model::JobAction::kKill;
}

// The core does not know jobs that have left it.
base::Error has_left(model::JobId id) {
  return {base::ErrorCode::kFailedPrecondition,
          fmt::format("job {} has ended and cannot be changed: submit it again", id.value), "id"};
}

}  // namespace

void Calls::act(std::string_view id, model::JobAction action, const Peer& peer, Resume resume,
                JobChanged done) const {
  const auto found = reader_.find_to_change(peer.caller, id);
  if (!found) return done(std::unexpected(found.error()));
  const model::Caller caller = peer.caller;
  const model::JobId job = found->job->id;
  auto finish = [this, caller, action, job,
                 done = std::move(done)](base::Result<model::CommandReply> reply) {
    // A job that ended between our look and the core's is not found there, but it is here.
    const bool ended = !reply && reply.error().code == base::ErrorCode::kNotFound;
    if (ended && stops(action)) reply = model::CommandReply{job, false};
    if (ended && !stops(action)) reply = std::unexpected(has_left(job));
    done(changed(std::move(reply), caller, job));
  };
  if (found->archived != nullptr && !found->whole_array) {
    return finish(base::fail(base::ErrorCode::kNotFound, "the job has left the core"));
  }
  send({caller, model::ActOnJob{job, action, found->whole_array}}, std::move(resume),
       std::move(finish));
}

// `command` makes the command for the job that was found.
template <class MakeCommand>
void Calls::change_one(std::string_view id, const Peer& peer, Resume resume, JobChanged done,
                       const MakeCommand& command) const {
  const auto found = reader_.find_to_change(peer.caller, id);
  if (!found) return done(std::unexpected(found.error()));
  const model::JobId job = found->job->id;
  if (found->archived != nullptr && !found->whole_array) {
    return done(std::unexpected(has_left(job)));
  }
  const model::Caller caller = peer.caller;
  send({caller, command(job, found->whole_array)}, std::move(resume),
       [this, caller, job, done = std::move(done)](base::Result<model::CommandReply> reply) {
         // It ended between our look and the core's.
         const bool ended = !reply && reply.error().code == base::ErrorCode::kNotFound;
         if (ended) reply = std::unexpected(has_left(job));
         done(changed(std::move(reply), caller, job));
       });
}

void Calls::raise(const v1::RaiseJobRequest& request, const Peer& peer, Resume resume,
                  JobChanged done) const {
  change_one(request.id(), peer, std::move(resume), std::move(done),
             [](model::JobId job, bool whole_array) { return model::RaiseJob{job, whole_array}; });
}

void Calls::signal(const v1::SignalJobRequest& request, const Peer& peer, Resume resume,
                   JobChanged done) const {
  const auto signal = to_job_signal(request.signal());
  if (!signal) return done(std::unexpected(signal.error()));
  change_one(request.id(), peer, std::move(resume), std::move(done),
             [&](model::JobId job, bool whole_array) {
               return model::SignalJob{job, *signal, whole_array};
             });
}

// The answer is short: a job may report thousands of steps.
void Calls::record_step(const v1::RecordStepRequest& request, const Peer& peer, Resume resume,
                        std::function<void(base::Result<v1::RecordStepResponse>)> done) const {
  const auto found = reader_.find_to_change(peer.caller, request.id());
  if (!found) return done(std::unexpected(found.error()));
  if (const base::Status one = check_is_one(*found); !one)
    return done(std::unexpected(one.error()));
  const model::JobId job = found->job->id;
  if (found->archived != nullptr) return done(std::unexpected(has_left(job)));
  auto command = to_model(request.step(), *found->job, found->snapshot->nodes);
  if (!command) return done(std::unexpected(std::move(command).error()));
  send({peer.caller, *std::move(command)}, std::move(resume),
       [job, done = std::move(done)](base::Result<model::CommandReply> reply) {
         const bool ended = !reply && reply.error().code == base::ErrorCode::kNotFound;
         if (ended) return done(std::unexpected(has_left(job)));
         if (!reply) return done(std::unexpected(std::move(reply).error()));
         v1::RecordStepResponse out;
         out.set_changed(reply->changed);
         done(std::move(out));
       });
}

void Calls::update(const v1::UpdateJobRequest& request, const Peer& peer, Resume resume,
                   JobChanged done) const {
  auto update = to_model(request, core_.snapshots.snapshot()->nodes);
  if (!update) return done(std::unexpected(std::move(update).error()));
  const auto found = reader_.find_to_change(peer.caller, request.id());
  if (!found) return done(std::unexpected(found.error()));
  const model::JobId job = found->job->id;
  if (found->archived != nullptr && !found->whole_array) {
    return done(std::unexpected(has_left(job)));
  }
  update->job = job;
  update->whole_array = found->whole_array;
  const model::Caller caller = peer.caller;
  auto finish = [this, caller, job,
                 done = std::move(done)](base::Result<model::CommandReply> reply) {
    const bool ended =
        !reply && reply.error().code == base::ErrorCode::kNotFound && reply.error().field == "id";
    if (ended) reply = std::unexpected(has_left(job));
    done(changed(std::move(reply), caller, job));
  };
  if (!request.spec().has_dependency()) {
    return send({caller, *std::move(update)}, std::move(resume), std::move(finish));
  }
  send_with_dependencies({request.spec().dependency(), caller,
                          [update = *std::move(update), caller](ResolvedDependencies resolved) {
                            model::UpdateJob one = update;
                            one.to.set(&model::JobSpec::dependencies, std::move(resolved.asked));
                            one.ended = std::move(resolved.ended);
                            return model::Command{caller, std::move(one)};
                          }},
                         std::move(resume), std::move(finish));
}

base::Result<v1::ChangeJobResponse> Calls::changed(base::Result<model::CommandReply> reply,
                                                   const model::Caller& caller,
                                                   model::JobId id) const {
  if (!reply) return std::unexpected(std::move(reply).error());
  TRY_ASSIGN(const FoundJob found, reader_.find(caller, id));
  v1::ChangeJobResponse out;
  out.set_changed(reply->changed);
  reader_.describe(caller, *found.job, found.snapshot->nodes, *out.mutable_job());
  reader_.explain(found, *out.mutable_job());
  return out;
}

void Calls::act_on_many(const v1::ActOnJobsRequest& request, const Peer& peer, Resume resume,
                        std::function<void(base::Result<v1::ActOnJobsResponse>)> done) const {
  // Without a filter by user it is the caller's own jobs, by their name.
  if (const base::Status named = check_named(peer); !named) {
    return done(std::unexpected(named.error()));
  }
  auto many = to_model(request, peer.caller);
  if (!many) return done(std::unexpected(std::move(many).error()));
  auto finish = [this, dry_run = many->dry_run,
                 done = std::move(done)](base::Result<model::CommandReply> reply) {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    done(outcomes(*reply, dry_run));
  };
  send({peer.caller, *std::move(many)}, std::move(resume), std::move(finish));
}

// The core chose only jobs that the caller may see.
v1::ActOnJobsResponse Calls::outcomes(const model::CommandReply& reply, bool dry_run) const {
  const model::Caller administrator = model::root_caller();
  v1::ActOnJobsResponse out;
  out.set_dry_run(dry_run);
  for (const model::JobOutcome& outcome : reply.jobs) {
    v1::JobOutcome& one = *out.add_jobs();
    one.set_id(fmt::format_int(outcome.job.value).str());
    if (const auto found = reader_.find(administrator, outcome.job)) {
      one.set_name(found->job->spec->name);
      one.set_user(found->job->spec->user);
      one.set_state(to_proto(found->job->state));
    }
    one.set_changed(outcome.changed);
    out.set_changed(out.changed() + (outcome.changed ? 1 : 0));
    if (!outcome.refusal) continue;
    one.set_refused(outcome.refusal->message);
    one.set_code(std::string(to_string(outcome.refusal->code)));
    out.set_refused(out.refused() + 1);
  }
  return out;
}

}  // namespace gpu_platform::api
