#include "api/use_calls.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/call_context.h"
#include "api/convert/use.h"
#include "model/job_spec.h"

namespace gpu_platform::api {

base::Result<v1::JobUse> UseCalls::get(const v1::GetJobUseRequest& request,
                                       const Peer& peer) const {
  TRY_ASSIGN(const FoundJob found, context_.reader.find(peer.caller, request.id()));
  const model::Job& job = *found.job;
  v1::JobUse out;
  out.set_id(fmt::format_int(job.id.value).str());
  out.set_monitored(job.spec->monitor);
  if (context_.core.uses == nullptr) return out;
  std::vector<telemetry::UseSummary> attempts;
  for (const model::Attempt& attempt : job.attempts) {
    auto summary = context_.core.uses->get({job.id, attempt.number});
    if (!summary) continue;
    to_proto(*summary, attempt.number, *out.add_attempts());
    attempts.push_back(*std::move(summary));
  }
  if (!attempts.empty()) to_proto(telemetry::totals_of(attempts), *out.mutable_whole());
  return out;
}

}  // namespace gpu_platform::api
