#include "model/audit_query.h"

#include <algorithm>

namespace gpu_platform::model {

namespace {

// A submission's other jobs are numbered after its first.
bool names_job_of(const AuditedCall& call, JobId first, JobId last) {
  if (call.action == AuditAction::kSubmit && !call.jobs.empty() && call.job_count > 0) {
    const JobId end(call.jobs.front().value + call.job_count - 1);
    return call.jobs.front() <= last && end >= first;
  }
  return std::ranges::any_of(call.jobs, [&](JobId job) { return job >= first && job <= last; });
}

}  // namespace

bool matches(const AuditQuery& query, const AuditEntry& entry) {
  const AuditedCall& call = entry.call;
  if (query.seen_by && !concerns(call, *query.seen_by)) return false;
  if (query.user && call.by.user != *query.user) return false;
  if (query.owner && (!call.owner || call.owner->user != *query.owner)) return false;
  if (query.action && call.action != *query.action) return false;
  if (query.outcome == AuditOutcome::kOk && call.refusal) return false;
  if (query.outcome == AuditOutcome::kRefused && !call.refusal) return false;
  if (!query.code.empty() && (!call.refusal || call.refusal->code != query.code)) return false;
  if (query.first_job.valid() && !names_job_of(call, query.first_job, query.last_job)) return false;
  if (query.since.is_set() && entry.at < query.since) return false;
  if (query.until.is_set() && entry.at >= query.until) return false;
  return !query.before.valid() || entry.seq < query.before;
}

bool AuditPager::take(AuditEntry entry) {
  const bool is_wanted = matches(query_, entry);
  const bool is_full = is_wanted && page_.entries.size() == query_.limit;
  if (is_full || looked_at_ == query_.max_looked_at) {
    page_.next = last_;
    return false;
  }
  // Those that were left behind by an earlier page cost it, not this one.
  const bool is_new = !query_.before.valid() || entry.seq < query_.before;
  if (is_new) {
    ++looked_at_;
    last_ = entry.seq;
  }
  if (is_wanted) page_.entries.push_back(std::move(entry));
  return true;
}

}  // namespace gpu_platform::model
