#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

// The teams of the organisation with their members, shares and limits. They are part of the policy.
// config/ has checked them: names are unique, parents exist, no team is below itself. What people
// set while the daemon runs is in model/run_time_team.h.

namespace gpu_platform::model {

// Limits for GPUs of one type, or of one family of types; what is guaranteed of them is read as in
// Quota.
struct TypeQuota {
  std::string type;  // as the catalogue names it, else as the driver does
  std::optional<std::uint32_t> max_gpus;
  std::optional<std::uint32_t> guaranteed_gpus = {};  // at most max_gpus, and that of all types
  std::optional<std::uint32_t> borrow_limit = {};
  std::optional<std::uint32_t> lend_limit = {};
  std::optional<std::uint32_t> gpu_hours = {};  // in one period

  friend bool operator==(const TypeQuota&, const TypeQuota&) = default;
};

// The limits of a team, a user or a project; an absent limit does not apply. For teams and named
// users also their guarantee (scheduling/pools/guarantees.h).
struct Quota {
  std::optional<std::uint32_t> max_gpus;          // at once
  std::optional<std::uint32_t> max_running_jobs;  // at once
  std::optional<std::uint32_t> max_queued_jobs;   // waiting at once, held ones too
  std::optional<std::uint32_t> gpu_hours;         // in one period
  std::optional<std::uint32_t> guaranteed_gpus;   // its own; at most max_gpus
  std::optional<std::uint32_t> borrow_limit;      // GPUs at once above guaranteed_gpus
  std::optional<std::uint32_t> lend_limit;        // of guaranteed_gpus, to others
  std::vector<TypeQuota> gpu_types;               // beside those of all GPUs; each type once
  // The holder's share of the GPUs beyond all guarantees, relative to other holders; absent: 1.
  std::optional<std::uint32_t> over_quota_weight = {};

  bool is_empty() const { return *this == Quota(); }
  friend bool operator==(const Quota&, const Quota&) = default;
};

// Periods of GPU-hours have a fixed length and are counted from 1970-01-01T00:00Z, weeks from the
// Monday after it: the same instant lies in the same period wherever it is asked.
enum class QuotaPeriod : std::uint8_t {
  kDay,
  kWeek,
  kThirtyDays,  // no calendar month, though the configuration calls it a month
};
inline constexpr std::size_t kQuotaPeriods = 3;
std::string_view to_string(QuotaPeriod period);  // "week"
base::Duration length_of(QuotaPeriod period);
// When the period that `at` lies in began.
base::Instant begin_of(QuotaPeriod period, base::Instant at);

// Says how guaranteed_gpus are read.
enum class AllocationMode : std::uint8_t {
  kGuaranteed,  // as they stand
  kStatic,      // they are the most too, and nothing of them is lent
  kDynamic,     // not read: any job may have any GPU
  kHybrid,      // scaled down until they come to no more than a share of the cluster
};
inline constexpr std::size_t kAllocationModes = 4;
std::string_view to_string(AllocationMode mode);  // "hybrid"

struct Member {
  std::string user;
  std::uint32_t shares = 1;
  // The member's jobs are charged to the team only if they name it. Of a team that is in force, and
  // never stored: it follows from what was set at run time.
  bool only_if_named = false;

  friend bool operator==(const Member&, const Member&) = default;
};

struct Team {
  std::string name;
  std::string parent;  // empty: the organisation itself
  std::uint32_t shares = 1;
  std::vector<Member> members;
  Quota quota;  // of all that is below it
  // Applies to its jobs, and to those of the teams below it that set none. Absent: the value of the
  // team above, or of the policy.
  std::optional<base::Duration> reclaim_min_runtime = {};
  std::optional<std::uint32_t> max_reclaims_per_job = {};
  std::optional<base::Duration> preempt_min_runtime = {};
  std::optional<base::Duration> default_time_limit = {};  // of a job that names none; not zero

  friend bool operator==(const Team&, const Team&) = default;
};

struct NamedQuota {
  std::string name;
  Quota quota;

  friend bool operator==(const NamedQuota&, const NamedQuota&) = default;
};

struct Organisation {
  std::vector<Team> teams;  // in the order of the configuration
  Quota of_each_user;       // of users without an entry of their own
  std::vector<NamedQuota> of_users;
  std::vector<NamedQuota> of_projects;
  QuotaPeriod period = QuotaPeriod::kWeek;
  AllocationMode allocation = AllocationMode::kGuaranteed;
  std::uint32_t reserved_thousandths = 300;  // of the cluster's GPUs, of kHybrid
  std::string file = {};                     // that names the teams, for messages; empty: not known

  friend bool operator==(const Organisation&, const Organisation&) = default;
};

const Team* find_team(const Organisation& organisation, std::string_view name);
bool is_member(const Team& team, std::string_view user);
// Returns the name, and the names of all teams below that team.
std::set<std::string> with_teams_below(const Organisation& organisation, const std::string& top);

// Returns the team that a job of the user is charged to; empty for a user without a team. `asked`
// is empty if none is named: then it is the first team that has the user and need not be named.
// Without configured teams, any name is one. The error names the field "team" and the allowed
// teams. `any_team`: the caller need not be a member (administrators).
base::Result<std::string> team_for(const Organisation& organisation, const std::string& user,
                                   const std::string& asked, bool any_team);

}  // namespace gpu_platform::model
