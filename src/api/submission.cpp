#include "api/submission.h"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "api/accounts.h"
#include "api/convert/job.h"
#include "api/dependencies.h"
#include "model/job_spec.h"

namespace gpu_platform::api {

namespace {

// Refuses a team where there are no teams at all; the core judges it where there are. Slurm's
// commands, which leave this label, may name any account then, as with a Slurm that has no
// accounting.
base::Status check_team(const v1::JobSpec& spec, const controller::Snapshot& snapshot) {
  const bool is_of_slurm = spec.labels().contains("slurm.partition");
  if (spec.team().empty() || is_of_slurm) return {};
  if (!snapshot.policy->organisation->teams.empty()) return {};
  return base::fail(base::ErrorCode::kNotFound,
                    fmt::format("team: there is no team '{}': this site has no teams; leave it "
                                "out, or have an administrator make it with 'gpu-platform team "
                                "create'",
                                spec.team()),
                    "team");
}

void send_as(const CallContext& context, const Account& account, const Submission& submission,
             const model::Caller& caller, Resume resume, CallContext::Finish finish) {
  const auto snapshot = context.core.snapshots.snapshot();
  if (const auto known = check_team(submission.spec, *snapshot); !known) {
    return finish(std::unexpected(known.error()));
  }
  auto order = api::to_model(submission.spec, account, snapshot->nodes);
  if (!order) return finish(std::unexpected(std::move(order).error()));
  order->dry_run = submission.dry_run;
  const std::string& dependency = submission.spec.dependency();
  if (dependency.empty()) {
    return context.send({caller, *std::move(order)}, std::move(resume), std::move(finish));
  }
  send_with_dependencies(context,
                         {dependency, caller,
                          [order = *std::move(order), caller](ResolvedDependencies resolved) {
                            model::SubmitJob one = order;
                            one.spec.dependencies = std::move(resolved.asked);
                            one.ended = std::move(resolved.ended);
                            return model::Command{caller, std::move(one)};
                          }},
                         std::move(resume), std::move(finish));
}

}  // namespace

void send_submission(const CallContext& context, Submission submission, const Peer& peer,
                     Resume resume, CallContext::Finish finish) {
  // Looking up another user takes longer than the caller keeps its request.
  const auto kept = std::make_shared<const Submission>(std::move(submission));
  auto send_it = [&context, kept, caller = peer.caller, resume,
                  finish = std::move(finish)](base::Result<Account> account) {
    if (!account) return finish(std::unexpected(std::move(account).error()));
    send_as(context, *account, *kept, caller, resume, finish);
  };
  find_job_owner(context, kept->spec.user(), peer, std::move(resume), std::move(send_it));
}

}  // namespace gpu_platform::api
