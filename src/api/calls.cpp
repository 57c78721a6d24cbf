#include "api/calls.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/convert/audit.h"
#include "api/convert/job_step.h"

namespace gpu_platform::api {

namespace {

constexpr std::uint32_t kDefaultOutputBytes = 256 * 1024;

}  // namespace

base::Status Calls::check_can_run(const Account& account) const {
  if (!options_.only_uid) {
    // Root's jobs are the core's to judge.
    const std::string why = account.uid == 0 ? "" : objection_to_user(account.uid, options_.users);
    if (why.empty()) return {};
    return base::fail(base::ErrorCode::kPermissionDenied,
                      fmt::format("user: {} may have no jobs: {}", account.user, why), "user");
  }
  if (*options_.only_uid == account.uid) return {};
  return base::fail(
      base::ErrorCode::kPermissionDenied,
      fmt::format(
          "user: this daemon runs as user id {} and not as root, so it can start jobs of that "
          "user alone; jobs of {} need a daemon of their own, or one that root runs",
          *options_.only_uid, account.user),
      "user");
}

void Calls::account_of(const v1::JobSpec& request, const Peer& peer, const Resume& resume,
                       AccountFound then) const {
  AccountFound done = [this, then = std::move(then)](base::Result<Account> account) {
    if (account) {
      if (const auto able = check_can_run(*account); !able) account = std::unexpected(able.error());
    }
    then(std::move(account));
  };
  const model::Caller& caller = peer.caller;
  if (!peer.has_account) {
    return done(base::fail(
        base::ErrorCode::kPermissionDenied,
        fmt::format("user: uid {} has no account on this machine, and only users with an account "
                    "may submit jobs (from a user namespace: submit from outside of it)",
                    caller.uid),
        "user"));
  }
  if (request.user().empty() || request.user() == caller.user) {
    const base::Status named = check_named(peer);
    if (!named) return done(std::unexpected(named.error()));
    return done(Account{caller.user, caller.uid, peer.gid});
  }
  if (caller.reach != model::Reach::kAll) {
    return done(base::fail(base::ErrorCode::kPermissionDenied,
                           fmt::format("user: only root may submit jobs of another user; you "
                                       "are {}",
                                       caller.user),
                           "user"));
  }
  core_.users.find(
      request.user(), caller.uid,
      [resume, done = std::move(done), name = request.user()](base::Result<host::User> found) {
        resume([done, name, found = std::move(found)] {
          if (found) return done(Account{found->name, found->uid, found->gid});
          if (found.error().code == base::ErrorCode::kNotFound) {
            return done(base::invalid(
                "user", fmt::format("user: there is no user '{}' on this machine", name)));
          }
          done(base::fail(found.error().code, "user: " + found.error().message, "user"));
        });
      });
}

void Calls::submit(const v1::JobSpec& request, const Peer& peer, Resume resume,
                   std::function<void(base::Result<Submitted>)> done) const {
  // Looking up another user takes longer than the caller keeps its request.
  const auto kept = std::make_shared<const v1::JobSpec>(request);
  account_of(request, peer, resume,
             [this, kept, caller = peer.caller, resume,
              done = std::move(done)](base::Result<Account> account) {
               if (!account) return done(std::unexpected(std::move(account).error()));
               submit_as(*account, *kept, caller, resume, done);
             });
}

void Calls::submit_as(const Account& account, const v1::JobSpec& request,
                      const model::Caller& caller, Resume resume,
                      std::function<void(base::Result<Submitted>)> done) const {
  auto submission = to_model(request, account, core_.snapshots.snapshot()->nodes);
  if (!submission) return done(std::unexpected(std::move(submission).error()));

  auto finish = [this, caller, done = std::move(done)](base::Result<model::CommandReply> reply) {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    auto found = reader_.find(caller, reply->job);
    if (!found) return done(std::unexpected(std::move(found).error()));
    Submitted answer;
    answer.is_repeat = !reply->changed;
    reader_.describe(caller, *found->job, found->snapshot->nodes, answer.job);
    if (is_explained(found->job->state)) {
      // An explanation costs a look at the whole queue, and the scheduler has not looked at this
      // job yet.
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
  reader_.describe(peer.caller, *found.job, found.snapshot->nodes, out);
  add_steps(*found.job, found.snapshot->nodes, out);
  reader_.explain(found, out);
  return out;
}

void Calls::output(const v1::GetOutputRequest& request, const Peer& peer, Resume resume,
                   std::function<void(base::Result<v1::OutputChunk>)> done) const {
  const auto found = reader_.find(peer.caller, request.id());
  if (!found) return done(std::unexpected(found.error()));
  if (const base::Status one = check_is_one(*found); !one) {
    return done(std::unexpected(one.error()));
  }
  const model::Job& job = *found->job;
  if (const base::Status seen = reader_.check_sees_output(peer.caller, job); !seen) {
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
  reader_.outputs().read(job, attempt, {request.offset(), most}, resume,
                         [most, out = std::move(out),
                          done = std::move(done)](base::Result<OutputPiece> piece) mutable {
                           if (!piece) return done(std::unexpected(std::move(piece).error()));
                           out.set_offset(piece->offset);
                           out.set_next_offset(piece->offset + piece->bytes.size());
                           // More may follow a full piece.
                           if (piece->bytes.size() == most || piece->has_more) out.set_ended(false);
                           out.set_data(std::move(piece->bytes));
                           done(std::move(out));
                         });
}

v1::Identity Calls::who_am_i(const v1::WhoAmIRequest&, const Peer& peer) const {
  const model::Caller& caller = peer.caller;
  v1::Identity out;
  out.set_user(caller.user);
  out.set_uid(caller.uid);
  out.set_role(static_cast<v1::Role>(static_cast<int>(caller.role) + 1));
  const bool is_local = caller.door != model::Door::kListener;
  out.set_credential(is_local                   ? v1::CREDENTIAL_KIND_SOCKET
                     : peer.identity == nullptr ? v1::CREDENTIAL_KIND_TOKEN
                     : peer.identity->kind == IdentityKind::kOpenId
                         ? v1::CREDENTIAL_KIND_OPENID
                         : v1::CREDENTIAL_KIND_CERTIFICATE);
  if (caller.credential != 0) out.set_token(std::to_string(caller.credential));
  if (caller.credential_name != nullptr) set_credential_name(*caller.credential_name, out);
  const std::shared_ptr<const controller::Snapshot> snapshot = core_.snapshots.snapshot();
  for (const auto& [name, team] : snapshot->teams->run_time) {
    const auto is_own = [&](const auto& each) { return each.user == caller.user; };
    if (std::ranges::any_of(team.invited, is_own)) out.add_invitations(name);
  }
  if (caller.teams == nullptr) return out;
  for (const std::string& team : caller.teams->member_of) out.add_teams(team);
  for (const std::string& team : caller.teams->coordinates) out.add_coordinates(team);
  return out;
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
  out.set_version(options_.version);
  out.set_api("v1");
  return out;
}

}  // namespace gpu_platform::api
