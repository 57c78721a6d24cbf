#include "api/ledger_view.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "accounting/live_lines.h"
#include "accounting/usage_sum.h"
#include "model/job_spec.h"

namespace gpu_platform::api {

LedgerView::LedgerView(const JobReader& reader, const model::Caller& caller, base::Instant now)
    : ledger_(reader.core().ledger),
      snapshot_(reader.core().snapshots.snapshot()),
      view_(reader.view_of(caller)),
      user_(caller.user),
      sees_fleet_(caller.reach == model::Reach::kAll),
      now_(std::max(now, snapshot_->at)) {}

bool LedgerView::sees(const model::LedgerLine& line) const {
  if (line.kind == model::LedgerKind::kRest) return sees_fleet_;
  return view_.sees_jobs_of(line.user, line.team);
}

std::optional<store::LedgerQuery> LedgerView::narrowed(store::LedgerQuery query) const {
  query.upto = snapshot_->seq;
  if (view_.sees_jobs_of_others()) return query;
  if (!query.user.empty() && query.user != user_) return std::nullopt;
  query.user = user_;
  return query;
}

base::Status LedgerView::visit_over(const store::LedgerQuery& query,
                                    const store::Ledger::Visit& visit) const {
  if (ledger_ == nullptr) return base::fail(base::ErrorCode::kUnavailable, "no ledger is kept");
  const auto seen = narrowed(query);
  if (!seen) return {};
  return ledger_->visit(*seen, [&](const model::LedgerLine& line) -> base::Status {
    return sees(line) ? visit(line) : base::Status();
  });
}

std::vector<model::LedgerLine> LedgerView::running_lines(const std::string& user) const {
  static const accounting::ReservationMap kNoReservations;
  const accounting::LiveView live{
      snapshot_->jobs,
      {snapshot_->nodes, prices(), *snapshot_->policy},
      snapshot_->reservations == nullptr ? kNoReservations : snapshot_->reservations->all()};
  if (sees_fleet_ && user.empty()) return accounting::live_lines(live, now_);
  std::vector<model::LedgerLine> lines;
  snapshot_->jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (!user.empty() && job.spec->user != user) return;
    accounting::append_live_lines(live.terms, job, now_, lines);
  });
  return lines;
}

base::Status LedgerView::visit_running(const store::LedgerQuery& query,
                                       const store::Ledger::Visit& visit) const {
  const auto seen = narrowed(query);
  if (!seen) return {};
  for (const model::LedgerLine& line : running_lines(seen->user)) {
    if (accounting::is_in(line, {query.from, query.to}) && sees(line)) TRY(visit(line));
  }
  return {};
}

base::Status LedgerView::visit(const store::LedgerQuery& query,
                               const store::Ledger::Visit& visit) const {
  TRY(visit_over(query, visit));
  return visit_running(query, visit);
}

}  // namespace gpu_platform::api
