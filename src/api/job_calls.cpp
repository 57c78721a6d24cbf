#include "api/job_calls.h"

#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "api/call_context.h"
#include "api/convert/enums.h"
#include "api/convert/job.h"
#include "api/convert/job_change.h"
#include "api/convert/job_step.h"
#include "api/dependencies.h"
#include "api/job_cost.h"
#include "api/submission.h"
#include "model/job_spec.h"
#include "views/job_budget.h"

namespace gpu_platform::api {

namespace {

constexpr std::uint32_t kDefaultOutputBytes = 256 * 1024;

bool stops(model::JobAction action) {
  return action == model::JobAction::kCancel || action == model::JobAction::kKill;
}

// The core does not know jobs that have left it.
base::Error has_left(model::JobId id) {
  return {base::ErrorCode::kFailedPrecondition,
          fmt::format("job {} has ended and cannot be changed; 'jobs rerun' submits it again",
                      id.value),
          "id"};
}

// Returns the answer about the job after a change.
base::Result<v1::ChangeJobResponse> changed_job(const CallContext& context,
                                                base::Result<model::CommandReply> reply,
                                                const model::Caller& caller, model::JobId id) {
  if (!reply) return std::unexpected(std::move(reply).error());
  TRY_ASSIGN(const FoundJob found, context.reader.find(caller, id));
  v1::ChangeJobResponse out;
  out.set_changed(reply->changed);
  context.reader.describe(caller, *found.job, found.snapshot->nodes, *out.mutable_job());
  context.reader.explain(caller, found, *out.mutable_job());
  return out;
}

// `command` makes the command for the job that was found.
template <class MakeCommand>
void change_one(const CallContext& context, std::string_view id, const Peer& peer, Resume resume,
                JobCalls::JobChanged done, const MakeCommand& command) {
  const auto found = context.reader.find_to_change(peer.caller, id);
  if (!found) return done(std::unexpected(found.error()));
  const model::JobId job = found->job->id;
  if (found->archived != nullptr && !found->whole_array) {
    return done(std::unexpected(has_left(job)));
  }
  const model::Caller caller = peer.caller;
  context.send(
      {caller, command(job, found->whole_array)}, std::move(resume),
      [&context, caller, job, done = std::move(done)](base::Result<model::CommandReply> reply) {
        // It ended between our look and the core's.
        const bool ended = !reply && reply.error().code == base::ErrorCode::kNotFound;
        if (ended) reply = std::unexpected(has_left(job));
        done(changed_job(context, std::move(reply), caller, job));
      });
}

// The core chose only jobs that the caller may see.
v1::ActOnJobsResponse outcomes(const CallContext& context, const model::CommandReply& reply,
                               bool dry_run) {
  const model::Caller administrator = model::root_caller();
  v1::ActOnJobsResponse out;
  out.set_dry_run(dry_run);
  for (const model::JobOutcome& outcome : reply.jobs) {
    v1::JobOutcome& one = *out.add_jobs();
    one.set_id(fmt::format_int(outcome.job.value).str());
    if (const auto found = context.reader.find(administrator, outcome.job)) {
      one.set_name(found->job->spec->name);
      one.set_user(found->job->spec->user);
      one.set_state(api::to_proto(found->job->state));
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

}  // namespace

base::Result<v1::Job> JobCalls::get(const v1::GetJobRequest& request, const Peer& peer) const {
  TRY_ASSIGN(const FoundJob found, context_.reader.find(peer.caller, request.id()));
  v1::Job out;
  context_.reader.describe(peer.caller, *found.job, found.snapshot->nodes, out);
  add_steps(*found.job, found.snapshot->nodes, out);
  context_.reader.add_gpu_use(*found.job, out);
  add_cost(context_.core, *found.snapshot, *found.job, out);
  context_.reader.explain(peer.caller, found, out);
  return out;
}

void JobCalls::output(const v1::GetOutputRequest& request, const Peer& peer, const Resume& resume,
                      Done<v1::OutputChunk> done) const {
  const auto found = context_.reader.find(peer.caller, request.id());
  if (!found) return done(std::unexpected(found.error()));
  if (const base::Status one = check_is_one(*found); !one) {
    return done(std::unexpected(one.error()));
  }
  const model::Job& job = *found->job;
  if (const base::Status seen = context_.reader.check_sees_output(peer.caller, job); !seen) {
    return done(std::unexpected(seen.error()));
  }
  const std::uint32_t latest = job.attempts.empty() ? 0 : job.attempts.back().number;
  const std::uint32_t attempt = request.has_attempt() ? request.attempt() : latest;
  if (attempt > latest) {
    return done(base::fail(base::ErrorCode::kNotFound,
                           fmt::format("attempt: job {} has {} attempts", request.id(), latest),
                           "attempt"));
  }
  v1::OutputChunk out;
  out.set_attempt(attempt);
  out.set_offset(request.offset());
  out.set_next_offset(request.offset());
  out.set_ended(attempt == latest && model::is_ended(job.state));
  if (attempt == 0) return done(std::move(out));
  const std::uint32_t most = request.has_limit() ? request.limit() : kDefaultOutputBytes;
  context_.reader.outputs().read(job, attempt, {request.offset(), most}, resume,
                                 [most, out = std::move(out),
                                  done = std::move(done)](base::Result<OutputPiece> piece) mutable {
                                   if (!piece)
                                     return done(std::unexpected(std::move(piece).error()));
                                   out.set_offset(piece->offset);
                                   out.set_next_offset(piece->offset + piece->bytes.size());
                                   // More may follow a full piece.
                                   if (piece->bytes.size() == most || piece->has_more)
                                     out.set_ended(false);
                                   out.set_data(std::move(piece->bytes));
                                   done(std::move(out));
                                 });
}

void JobCalls::submit(const v1::SubmitJobRequest& request, const Peer& peer, Resume resume,
                      Done<Created<v1::Job>> done) const {
  auto finish = [&reader = context_.reader, caller = peer.caller,
                 done = std::move(done)](base::Result<model::CommandReply> reply) {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    auto found = reader.find(caller, reply->job);
    if (!found) return done(std::unexpected(std::move(found).error()));
    Created<v1::Job> made;
    made.is_repeat = !reply->changed;
    reader.describe(caller, *found->job, found->snapshot->nodes, made.answer);
    if (std::string note = views::budget_note(*found->snapshot, *found->job->spec); !note.empty()) {
      made.answer.add_warnings(std::move(note));
    }
    if (is_explained(found->job->state)) {
      // An explanation costs a look at the whole queue, and the scheduler has not looked at this
      // job yet.
      to_proto(model::WaitReason{}, *made.answer.mutable_wait_reason());
    }
    done(std::move(made));
  };
  send_submission(context_, {.spec = request.spec()}, peer, std::move(resume), std::move(finish));
}

void JobCalls::act(std::string_view id, model::JobAction action, const Peer& peer, Resume resume,
                   JobChanged done) const {
  const auto found = context_.reader.find_to_change(peer.caller, id);
  if (!found) return done(std::unexpected(found.error()));
  const model::Caller caller = peer.caller;
  const model::JobId job = found->job->id;
  auto finish = [&context = context_, caller, action, job,
                 done = std::move(done)](base::Result<model::CommandReply> reply) {
    // A job that ended between our look and the core's is not found there, but it is here.
    const bool ended = !reply && reply.error().code == base::ErrorCode::kNotFound;
    if (ended && stops(action)) reply = model::CommandReply{job, false};
    if (ended && !stops(action)) reply = std::unexpected(has_left(job));
    done(changed_job(context, std::move(reply), caller, job));
  };
  if (found->archived != nullptr && !found->whole_array) {
    return finish(base::fail(
        base::ErrorCode::kNotFound,
        "the job has ended and is only in the history; name a job that is not archived"));
  }
  context_.send({caller, model::ActOnJob{job, action, found->whole_array}}, std::move(resume),
                std::move(finish));
}

void JobCalls::requeue(const v1::RequeueJobRequest& request, const Peer& peer, Resume resume,
                       JobChanged done) const {
  act(request.id(), requeue_action(request), peer, std::move(resume), std::move(done));
}

void JobCalls::raise(const v1::RaiseJobRequest& request, const Peer& peer, Resume resume,
                     JobChanged done) const {
  change_one(context_, request.id(), peer, std::move(resume), std::move(done),
             [](model::JobId job, bool whole_array) { return model::RaiseJob{job, whole_array}; });
}

void JobCalls::signal(const v1::SignalJobRequest& request, const Peer& peer, Resume resume,
                      JobChanged done) const {
  const auto signal = to_job_signal(request.signal());
  if (!signal) return done(std::unexpected(signal.error()));
  change_one(context_, request.id(), peer, std::move(resume), std::move(done),
             [&](model::JobId job, bool whole_array) {
               return model::SignalJob{job, *signal, whole_array};
             });
}

// The answer is short: a job may report thousands of steps.
void JobCalls::record_step(const v1::RecordStepRequest& request, const Peer& peer, Resume resume,
                           Done<v1::RecordStepResponse> done) const {
  const auto found = context_.reader.find_to_change(peer.caller, request.id());
  if (!found) return done(std::unexpected(found.error()));
  if (const base::Status one = check_is_one(*found); !one)
    return done(std::unexpected(one.error()));
  const model::JobId job = found->job->id;
  if (found->archived != nullptr) return done(std::unexpected(has_left(job)));
  auto command = to_model(request.step(), *found->job, found->snapshot->nodes);
  if (!command) return done(std::unexpected(std::move(command).error()));
  context_.send({peer.caller, *std::move(command)}, std::move(resume),
                [job, done = std::move(done)](base::Result<model::CommandReply> reply) {
                  const bool ended = !reply && reply.error().code == base::ErrorCode::kNotFound;
                  if (ended) return done(std::unexpected(has_left(job)));
                  if (!reply) return done(std::unexpected(std::move(reply).error()));
                  v1::RecordStepResponse out;
                  out.set_changed(reply->changed);
                  done(std::move(out));
                });
}

void JobCalls::update(const v1::UpdateJobRequest& request, const Peer& peer, Resume resume,
                      JobChanged done) const {
  auto update = to_model(request, context_.core.snapshots.snapshot()->nodes);
  if (!update) return done(std::unexpected(std::move(update).error()));
  const auto found = context_.reader.find_to_change(peer.caller, request.id());
  if (!found) return done(std::unexpected(found.error()));
  const model::JobId job = found->job->id;
  if (found->archived != nullptr && !found->whole_array) {
    return done(std::unexpected(has_left(job)));
  }
  update->job = job;
  update->whole_array = found->whole_array;
  const model::Caller caller = peer.caller;
  auto finish = [&context = context_, caller, job,
                 done = std::move(done)](base::Result<model::CommandReply> reply) {
    const bool ended =
        !reply && reply.error().code == base::ErrorCode::kNotFound && reply.error().field == "id";
    if (ended) reply = std::unexpected(has_left(job));
    done(changed_job(context, std::move(reply), caller, job));
  };
  if (!request.spec().has_dependency()) {
    return context_.send({caller, *std::move(update)}, std::move(resume), std::move(finish));
  }
  send_with_dependencies(context_,
                         {request.spec().dependency(), caller,
                          [update = *std::move(update), caller](ResolvedDependencies resolved) {
                            model::UpdateJob one = update;
                            one.to.set(&model::JobSpec::dependencies, std::move(resolved.asked));
                            one.ended = std::move(resolved.ended);
                            return model::Command{caller, std::move(one)};
                          }},
                         std::move(resume), std::move(finish));
}

void JobCalls::act_on_many(const v1::ActOnJobsRequest& request, const Peer& peer, Resume resume,
                           Done<v1::ActOnJobsResponse> done) const {
  // Without a filter by user it is the caller's own jobs, by their name.
  if (const base::Status named = check_named(peer); !named) {
    return done(std::unexpected(named.error()));
  }
  auto many = to_model(request, peer.caller);
  if (!many) return done(std::unexpected(std::move(many).error()));
  auto finish = [&context = context_, dry_run = many->dry_run,
                 done = std::move(done)](base::Result<model::CommandReply> reply) {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    done(outcomes(context, *reply, dry_run));
  };
  context_.send({peer.caller, *std::move(many)}, std::move(resume), std::move(finish));
}

}  // namespace gpu_platform::api
