#include <utility>

#include "api/calls.h"
#include "api/convert/audit.h"

// The audit trail: reading it, and what the door adds to it.

namespace gpu_platform::api {

base::Result<v1::ListAuditResponse> Calls::audit(const v1::ListAuditRequest& request,
                                                 const Peer& peer) const {
  TRY_ASSIGN(model::AuditQuery query, to_model(request));
  if (peer.caller.reach != model::Reach::kAll) query.seen_by = peer.caller.uid;
  if (request.has_job()) {
    TRY_ASSIGN(const FoundJob found, reader_.find(peer.caller, request.job()));
    const model::Job& job = *found.job;
    query.first_job = query.last_job = job.id;
    if (found.whole_array) query.last_job.value += member_count(*job.spec->array) - 1;
  }
  v1::ListAuditResponse out;
  if (core_.audit == nullptr) return out;
  TRY_ASSIGN(const model::AuditPage page, core_.audit->audit(query));
  for (const model::AuditEntry& entry : page.entries) {
    const bool is_own = entry.call.by.uid == peer.caller.uid;
    to_proto(entry, is_own || peer.caller.reach == model::Reach::kAll, *out.add_entries());
  }
  if (page.next.valid()) out.set_next_page(std::to_string(page.next.value));
  return out;
}

void Calls::record_channel(model::AuditAction action, const model::ChannelOrder& order,
                           const Peer& peer, Resume resume,
                           std::function<void(base::Status)> done) const {
  if (core_.audit == nullptr) return done({});
  model::AuditedCall call;
  call.by = model::origin_of(peer.caller);
  call.action = action;
  call.jobs = {order.attempt.job};
  call.job_count = 1;
  if (const auto found = reader_.find(peer.caller, order.attempt.job)) {
    call.owner = {found->job->spec->user, found->job->spec->uid};
  }
  send({peer.caller, model::RecordCalls{{std::move(call)}}}, std::move(resume),
       [done = std::move(done)](base::Result<model::CommandReply> reply) {
         if (!reply) return done(std::unexpected(std::move(reply).error()));
         done({});
       });
}

}  // namespace gpu_platform::api
