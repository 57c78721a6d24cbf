#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/snapshot.h"
#include "model/team.h"
#include "scheduling/order/fair_share_ranking.h"
#include "scheduling/pools/surplus.h"
#include "scheduling/quota/quota_ledger.h"

namespace gpu_platform::views {

struct Shares {
  bool is_counted = false;  // else the order does not depend on usage, and all use is 0
  std::vector<scheduling::ShareRow> rows;  // a team comes before the accounts below it
};

// A holder of a guarantee, or all work without one, with its share of the GPUs beyond guarantees.
struct SurplusRow {
  std::string pool;                 // the type whose GPUs it is about; empty: all others
  scheduling::QuotaSubject holder;  // without a name: all work without a guarantee
  base::GpuShare guaranteed;
  scheduling::SurplusPart part;
};
// Returns nothing if no weight is set. Cost: all jobs.
std::vector<SurplusRow> surplus_of(const controller::Snapshot& snapshot);

// The fair-share usage of teams and users and their places, as of the snapshot.
Shares shares_of(const controller::Snapshot& snapshot);

// Returns what was used of GPUs as of `now`: GPU-seconds, decayed by half-life. Zero if usage is
// not counted.
double gpu_seconds_at(const controller::Snapshot& snapshot, const scheduling::ShareRow& row,
                      base::Instant now);
double in_gpu_seconds(std::uint64_t gpu_time);  // a gpu_time()

// What the running attempts may still use of GPUs by their time limits, as gpu_time(), by the type
// of the GPUs: of each account, of each team with all below it (no user), and of all (neither).
using RunningUse = std::map<scheduling::Account, std::map<std::string, std::uint64_t>>;
RunningUse running_use_of(const controller::Snapshot& snapshot,
                          base::Instant now);  // cost: all jobs

// What is limited for, or guaranteed to, a team, a user or a project, and its present use.
struct QuotaRow {
  scheduling::QuotaSubject subject;
  // Unset: the limits that do not depend on the type, which are in `quota`.
  std::optional<model::TypeQuota> of_type;
  model::Quota quota;
  scheduling::QuotaUse use;  // as it counts against the limits
};

// For each holder one row for all GPUs, and then one for each type that it has limits or guarantees
// for: teams, users, projects. A user without limits of their own has rows while anything counts
// against those of each user. Cost: all jobs if anything is limited or guaranteed.
std::vector<QuotaRow> quotas_of(const controller::Snapshot& snapshot);

}  // namespace gpu_platform::views
