#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/core_access.h"
#include "api/job_reader.h"
#include "base/result.h"
#include "model/access_rules.h"
#include "model/caller.h"
#include "model/ledger.h"
#include "store/ledger.h"

namespace gpu_platform::api {

// The lines of the ledger that a caller sees, as of one snapshot: those of what was over by then,
// and those of what goes on in it, as if it ended now. So no time is in two lines, and none is left
// out, whatever ends while they are read.
//
// A caller sees the held lines and the corrections of the jobs that it sees; the time that no job
// had is for those who reach everything.
class LedgerView {
 public:
  // Takes the newest snapshot. `reader` outlives it.
  LedgerView(const JobReader& reader, const model::Caller& caller, base::Instant now);

  const controller::Snapshot& snapshot() const { return *snapshot_; }
  const model::PriceBook& prices() const { return *snapshot_->prices; }
  const std::string& currency() const { return snapshot_->policy->billing->currency; }
  base::Instant now() const { return now_; }
  bool sees_all_jobs() const { return view_.sees_all_jobs(); }
  bool sees_fleet() const { return sees_fleet_; }

  // Visits the lines of what is over. kUnavailable if there is no ledger.
  base::Status visit_over(const store::LedgerQuery& query, const store::Ledger::Visit& visit) const;
  // Visits the lines of what goes on that have a moment in the window. `user`: as in a query.
  base::Status visit_running(const store::LedgerQuery& query,
                             const store::Ledger::Visit& visit) const;
  // Both.
  base::Status visit(const store::LedgerQuery& query, const store::Ledger::Visit& visit) const;

 private:
  bool sees(const model::LedgerLine& line) const;
  // The query, as of the snapshot, of what the caller may see; nothing if that is nothing.
  std::optional<store::LedgerQuery> narrowed(store::LedgerQuery query) const;
  // `user`: not empty: of this user alone.
  std::vector<model::LedgerLine> running_lines(const std::string& user) const;

  const store::Ledger* ledger_;
  std::shared_ptr<const controller::Snapshot> snapshot_;
  const model::View view_;
  const std::string user_;
  const bool sees_fleet_;
  const base::Instant now_;
};

}  // namespace gpu_platform::api
