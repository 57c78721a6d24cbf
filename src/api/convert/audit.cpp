#include "api/convert/audit.h"

#include <string>

#include "base/parse.h"

namespace gpu_platform::api {

base::Result<model::AuditQuery> to_model(const v1::ListAuditRequest& request) {
  model::AuditQuery query;
  if (request.has_user()) query.user = request.user();
  if (request.has_owner()) query.owner = request.owner();
  if (request.action() != v1::AUDIT_ACTION_UNSPECIFIED) query.action = to_model(request.action());
  if (request.outcome() == v1::AUDIT_OUTCOME_OK) query.outcome = model::AuditOutcome::kOk;
  if (request.outcome() == v1::AUDIT_OUTCOME_REFUSED) {
    query.outcome = model::AuditOutcome::kRefused;
  }
  query.code = request.code();
  if (request.has_since()) query.since = to_model(request.since());
  if (request.has_until()) query.until = to_model(request.until());
  if (request.has_limit()) query.limit = request.limit();
  if (request.has_page_token()) {
    const auto before = base::parse_count(request.page_token(), 1, INT64_MAX);
    if (!before) {
      return base::invalid("page_token", "page_token: must be the next_page of an earlier answer");
    }
    query.before = model::EventSeq(*before);
  }
  return query;
}

namespace {

// Entries of before names were recorded have the token's id alone.
v1::CredentialKind credential_of(const model::Origin& by) {
  if (by.door == model::Door::kUnixSocket) return v1::CREDENTIAL_KIND_SOCKET;
  if (by.token.valid()) return v1::CREDENTIAL_KIND_TOKEN;
  if (!by.credential) return v1::CREDENTIAL_KIND_UNSPECIFIED;
  return by.credential->issuer.empty() ? v1::CREDENTIAL_KIND_CERTIFICATE
                                       : v1::CREDENTIAL_KIND_OPENID;
}

}  // namespace

void to_proto(const model::AuditEntry& entry, bool names_credential, v1::AuditEntry& out) {
  const model::AuditedCall& call = entry.call;
  out.set_id(std::to_string(entry.seq.value));
  to_proto(entry.at, *out.mutable_at());
  out.set_user(call.by.user);
  out.set_uid(call.by.uid);
  if (call.by.pid != 0) out.set_pid(call.by.pid);
  out.set_door(to_proto(call.by.door));
  out.set_action(to_proto(call.action));
  out.set_outcome(call.refusal ? v1::AUDIT_OUTCOME_REFUSED : v1::AUDIT_OUTCOME_OK);
  if (call.refusal) {
    out.set_code(call.refusal->code);
    out.set_reason(call.refusal->text);
  }
  if (call.owner) {
    out.set_owner(call.owner->user);
    out.set_owner_uid(call.owner->uid);
  }
  for (const model::JobId job : call.jobs) out.add_jobs(std::to_string(job.value));
  out.set_job_count(call.job_count);
  for (const std::string& gpu : call.gpus) out.add_gpus(gpu);
  out.set_gpu_count(call.gpu_count);
  if (!call.target.empty()) out.set_target(call.target);
  if (!call.request_id.empty()) out.set_request_id(call.request_id);
  if (call.by.token.valid()) out.set_token(std::to_string(call.by.token.value));
  out.set_credential(credential_of(call.by));
  if (names_credential && call.by.credential) set_credential_name(*call.by.credential, out);
  out.set_calls(call.calls);
  if (call.since.is_set()) to_proto(call.since, *out.mutable_since());
}

}  // namespace gpu_platform::api
