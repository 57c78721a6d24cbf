#pragma once

#include <vector>

#include "accounting/attempt_lines.h"
#include "accounting/rest_lines.h"
#include "base/persistent_map.h"
#include "base/units.h"
#include "model/job.h"
#include "model/ledger.h"

// The lines that the ledger does not have yet: of what goes on now. With them a figure is up to
// date, and the books of the present balance.

namespace gpu_platform::accounting {

// A snapshot of the core. All of it outlives the call.
struct LiveView {
  const base::PersistentMap<model::Job>& jobs;  // by JobId
  LineTerms terms;
  const ReservationMap& reservations;
};

// Returns the lines that the ledger would get if all that goes on ended now: of attempts, then of
// GPUs, each by id. Why an attempt is not billed is known when it ends: until then it is billed.
// `now` is no earlier than the snapshot.
std::vector<model::LedgerLine> live_lines(const LiveView& view, base::Instant now);
// The lines of the job's attempts that go on.
void append_live_lines(const LineTerms& terms, const model::Job& job, base::Instant now,
                       std::vector<model::LedgerLine>& lines);

}  // namespace gpu_platform::accounting
