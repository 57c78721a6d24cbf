#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "gpu_platform/v1/usage.pb.h"

// What was used within a time, as sreport sums it up. GPUs and billing are those of the daemon's
// ledger. It has no CPUs, memory and nodes of jobs with GPUs: these are summed up from the
// attempts of jobs. Pure.

namespace gpu_platform::shims {

struct Period {
  base::Instant begin;
  base::Instant end;

  base::Duration length() const { return end - begin; }
};

// Returns the part of the period that the records of the cluster cover, which begin at `since`; of
// length zero if they begin after it. Nothing: it is not known when they begin.
Period recorded_part(const Period& period, std::optional<base::Instant> since);

// Resources that are counted, under Slurm's names. "gres/gpu:h100" is counted, too.
inline constexpr std::string_view kCountedResources[] = {"cpu", "mem", "node", "billing",
                                                         "gres/gpu"};
bool is_counted(std::string_view resource);
// Returns whether the ledger has it: GPUs and billing.
bool is_of_ledger(std::string_view resource);
// Returns whether it is the GPUs of one type or family.
bool names_type(std::string_view resource);

// The key is a resource, the value is in seconds; that of memory in MiB seconds. One billing for an
// hour is one unit of the site's currency.
using Held = std::map<std::string, double, std::less<>>;

// The key is an account and a user. A user that is empty stands for the account as a whole.
using HeldBy = std::map<std::pair<std::string, std::string>, Held>;

// Adds CPUs, memory and nodes of the attempts of jobs as far as they ran within the period. An
// attempt that runs still counts until `now`.
void add_attempts(const std::vector<v1::Job>& jobs, const Period& period, base::Instant now,
                  HeldBy& held);

// Adds these resources of the ledger. `usage` is grouped by team, by user and, where `with_types`,
// by the type of GPU. Use counts whether it is billed or not; what a team was charged by a
// correction is its account's alone.
struct LedgerColumns {
  std::vector<std::string> resources;
  bool with_types = false;
};
void add_ledger(const v1::Usage& usage, const LedgerColumns& columns, HeldBy& held);

// The account above each; one that is not there lies below "root".
using AccountParents = std::map<std::string, std::string>;
// "root", then the accounts below it down to this one.
std::vector<std::string> lineage_of(const std::string& account, const AccountParents& parents);
// Adds what each account used as a whole, with its users and the accounts below it.
void add_accounts(const AccountParents& parents, HeldBy& held);

// What became of all there is of a resource, in seconds.
struct Portions {
  double used = 0;
  double idle = 0;
  double planned = 0;       // kept for jobs, or being prepared for them or cleaned up after them
  double planned_down = 0;  // draining
  double down = 0;

  double whole() const { return used + idle + planned + planned_down + down; }
};
// Returns that of a resource of the ledger. Nothing: the caller may not see what no job used.
std::optional<Portions> portions_of(const v1::Usage& usage, std::string_view resource,
                                    const LedgerColumns& columns);

// How much of a resource the nodes have. Memory in MiB; of billing nothing is known.
double capacity_of(const v1::Status& status, std::string_view resource);

}  // namespace gpu_platform::shims
