#include "api/submission.h"

#include <memory>
#include <utility>

#include "api/accounts.h"
#include "api/convert/job.h"
#include "api/dependencies.h"

namespace gpu_platform::api {

namespace {

void send_as(const CallContext& context, const Account& account, const Submission& submission,
             const model::Caller& caller, Resume resume, CallContext::Finish finish) {
  auto order = api::to_model(submission.spec, account, context.core.snapshots.snapshot()->nodes);
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
