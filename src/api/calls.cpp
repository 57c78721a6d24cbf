#include "api/calls.h"

#include <fmt/format.h>

namespace gpu_platform::api {

namespace {

constexpr std::uint32_t kDefaultOutputBytes = 256 * 1024;

}  // namespace

base::Result<Account> Calls::account_of(const v1::SubmitJobRequest& request,
                                        const Peer& peer) const {
  const model::Caller& caller = peer.caller;
  if (request.user().empty() || request.user() == caller.user) {
    return Account{caller.user, caller.uid, peer.gid};
  }
  if (!caller.is_administrator) {
    return base::fail(
        base::ErrorCode::kPermissionDenied,
        fmt::format("user: only an administrator may submit jobs of another user; you "
                    "are {}",
                    caller.user),
        "user");
  }
  return users_.find(request.user());
}

void Calls::submit(const v1::SubmitJobRequest& request, const Peer& peer, Resume resume,
                   std::function<void(base::Result<Submitted>)> done) const {
  const auto refuse = [&](base::Error error) { done(std::unexpected(std::move(error))); };
  // Limits first: a user's name is looked up only when it has a sane size.
  auto account = account_of(request, peer);
  if (!account) return refuse(std::move(account).error());
  auto submission = to_model(request, *account, core_.snapshots.snapshot()->nodes);
  if (!submission) return refuse(std::move(submission).error());

  const model::Caller caller = peer.caller;
  auto finish = [this, caller, done = std::move(done)](base::Result<model::CommandReply> reply) {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    auto found = reader_.find(caller, reply->job);
    if (!found) return done(std::unexpected(std::move(found).error()));
    Submitted answer;
    answer.is_repeat = !reply->changed;
    reader_.describe(*found->job, found->snapshot->nodes, answer.job);
    if (is_explained(found->job->state)) {
      // Explaining a job costs a look at the whole queue, and nobody has looked at this one yet.
      to_proto(model::WaitReason{}, *answer.job.mutable_wait_reason());
    }
    done(std::move(answer));
  };
  send_submission(*std::move(submission), request.dependency(), caller, std::move(resume),
                  std::move(finish));
}

void Calls::send_submission(model::SubmitJob submission, const std::string& dependency,
                            const model::Caller& caller, Resume resume,
                            std::function<void(base::Result<model::CommandReply>)> finish) const {
  if (dependency.empty()) {
    return send({caller, std::move(submission)}, std::move(resume), std::move(finish));
  }
  send_with_dependencies(
      {dependency, caller,
       [submission = std::move(submission), caller](ResolvedDependencies resolved) {
         model::SubmitJob one = submission;
         one.spec.dependencies = std::move(resolved.asked);
         one.ended = std::move(resolved.ended);
         return model::Command{caller, std::move(one)};
       }},
      std::move(resume), std::move(finish));
}

void Calls::send_with_dependencies(
    Dependent dependent, Resume resume,
    std::function<void(base::Result<model::CommandReply>)> finish) const {
  auto resolved = resolve_dependencies(reader_, dependent.caller, dependent.dependency);
  if (!resolved) return finish(std::unexpected(std::move(resolved).error()));
  model::Command command = dependent.command(*std::move(resolved));
  auto answered = [this, dependent = std::move(dependent), resume,
                   finish = std::move(finish)](base::Result<model::CommandReply> reply) mutable {
    const bool has_left = !reply && reply.error().code == base::ErrorCode::kNotFound &&
                          reply.error().field == "dependency";
    if (!has_left || --dependent.looks == 0) return finish(std::move(reply));
    send_with_dependencies(std::move(dependent), std::move(resume), std::move(finish));
  };
  send(std::move(command), std::move(resume), std::move(answered));
}

void Calls::send(model::Command command, Resume resume,
                 std::function<void(base::Result<model::CommandReply>)> finish) const {
  core_.commands.submit(
      std::move(command), [resume = std::move(resume), finish = std::move(finish)](
                              base::Result<model::CommandReply> r) mutable {
        // Moved on, so that nothing of the request is left for this thread to destroy.
        resume([finish = std::move(finish), r = std::move(r)]() mutable { finish(std::move(r)); });
      });
}

base::Result<v1::Job> Calls::get(const v1::GetJobRequest& request, const Peer& peer) const {
  TRY_ASSIGN(const FoundJob found, reader_.find(peer.caller, request.id()));
  v1::Job out;
  reader_.describe(*found.job, found.snapshot->nodes, out);
  reader_.explain(found, out);
  return out;
}

base::Result<v1::OutputChunk> Calls::output(const v1::GetOutputRequest& request,
                                            const Peer& peer) const {
  TRY_ASSIGN(const FoundJob found, reader_.find(peer.caller, request.id()));
  TRY(check_is_one(found));
  const model::Job& job = *found.job;
  const std::uint32_t latest = job.attempts.empty() ? 0 : job.attempts.back().number;
  const std::uint32_t attempt = request.has_attempt() ? request.attempt() : latest;
  if (attempt > latest) {
    return base::fail(base::ErrorCode::kNotFound,
                      fmt::format("attempt: job {} has {} attempts", request.id(), latest),
                      "attempt");
  }
  v1::OutputChunk out;
  out.set_attempt(attempt);
  out.set_offset(request.offset());
  out.set_next_offset(request.offset());
  out.set_ended(attempt == latest && model::is_ended(job.state));
  if (attempt == 0) return out;
  const std::uint32_t most = request.has_limit() ? request.limit() : kDefaultOutputBytes;
  TRY_ASSIGN(OutputPiece piece, read_whole(job, attempt, request.offset(), most));
  out.set_offset(piece.offset);
  out.set_next_offset(piece.offset + piece.bytes.size());
  // More may follow a full piece.
  if (piece.bytes.size() == most) out.set_ended(false);
  out.set_data(std::move(piece.bytes));
  return out;
}

base::Result<OutputPiece> Calls::read_whole(const model::Job& job, std::uint32_t attempt,
                                            std::uint64_t offset, std::size_t most) const {
  TRY_ASSIGN(OutputPiece whole, core_.outputs.read(job, attempt, offset, most));
  bool is_at_end = whole.bytes.empty();
  while (!is_at_end && whole.bytes.size() < most) {
    const std::uint64_t next = whole.offset + whole.bytes.size();
    TRY_ASSIGN(const OutputPiece more,
               core_.outputs.read(job, attempt, next, most - whole.bytes.size()));
    is_at_end = more.bytes.empty() || more.offset != next;
    if (!is_at_end) whole.bytes += more.bytes;
  }
  return whole;
}

v1::Health Calls::health() const {
  v1::Health out;
  out.set_status("ok");
  const std::chrono::duration<double> uptime = std::chrono::steady_clock::now() - began_;
  out.set_uptime_seconds(uptime.count());
  return out;
}

base::Result<v1::Readiness> Calls::readiness() const {
  if (core_.readiness) {
    const base::Status status = core_.readiness();
    if (!status) return base::fail(base::ErrorCode::kUnavailable, status.error().message);
  }
  v1::Readiness out;
  out.set_ready(true);
  return out;
}

v1::Version Calls::version() const {
  v1::Version out;
  out.set_version(version_);
  out.set_api("v1");
  return out;
}

}  // namespace gpu_platform::api
