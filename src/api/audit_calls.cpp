#include "api/audit_calls.h"

#include <string>
#include <utility>

#include "api/audit_names.h"
#include "api/call_context.h"
#include "api/convert/audit.h"
#include "model/job_spec.h"

namespace gpu_platform::api {

base::Result<v1::ListAuditResponse> AuditCalls::list(const v1::ListAuditRequest& request,
                                                     const Peer& peer) const {
  TRY_ASSIGN(model::AuditQuery query, to_model(request));
  if (peer.caller.reach != model::Reach::kAll) query.seen_by = peer.caller.uid;
  if (request.has_job()) {
    TRY_ASSIGN(const FoundJob found, context_.reader.find(peer.caller, request.job()));
    const model::Job& job = *found.job;
    query.first_job = query.last_job = job.id;
    if (found.whole_array) query.last_job.value += member_count(*job.spec->array) - 1;
  }
  v1::ListAuditResponse out;
  if (context_.core.audit == nullptr) return out;
  TRY_ASSIGN(const model::AuditPage page, context_.core.audit->audit(query));
  AuditNames names(context_.reader, peer.caller);
  for (const model::AuditEntry& entry : page.entries) {
    const bool is_own = entry.call.by.uid == peer.caller.uid;
    v1::AuditEntry& shown = *out.add_entries();
    to_proto(entry, is_own || peer.caller.reach == model::Reach::kAll, shown);
    names.add(entry.call, shown);
  }
  if (page.next.valid()) out.set_next_page(std::to_string(page.next.value));
  return out;
}

}  // namespace gpu_platform::api
