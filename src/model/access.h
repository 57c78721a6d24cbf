#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "model/command.h"
#include "model/job.h"
#include "model/role.h"

// What a caller may do beyond what is its own. Which role may use which call, for what, stands with
// the calls (proto/, option `access`); the door makes a Role and a Reach of it. Judges and readers
// ask the functions here, and none of them decides what an administrator is.

namespace gpu_platform::model {

// Returns whether the call may touch the jobs with responsibility for them: a coordinator of
// their team whose role is not below that of their user, or a caller who reaches all.
bool manages(const Caller& caller, const JobSpec& spec);
// Returns whether the call may touch the job: it is the caller's own, or the caller manages it.
bool may_touch(const Caller& caller, const JobSpec& spec);
// The same, as the error that says it.
base::Status check_may_touch(const Caller& caller, JobId job, const JobSpec& spec);
// Returns whether the call may touch what belongs to the site: GPUs, nodes and reservations.
bool may_touch_site(const Caller& caller);
// Returns whether the call may touch the team: its caller coordinates it, or reaches all.
bool may_touch_team(const Caller& caller, std::string_view team);
// Returns whether the call may make, see and end the tokens of that user.
bool may_touch_tokens_of(const Caller& caller, std::uint32_t uid);

// The rights that a role has in all of its calls.
enum class Right : std::uint8_t {
  kSeeJobs,
  kSeeCommands,
  kSeeOutput,
  kSeeUsage,
  kPassLimits,
  kFillQueue,
  kChargeAnyTeam,
};
struct RightRow {
  Right right;
  Role least;             // this role and those above it
  std::string_view text;  // for docs/security.md
};
// Returns the table, in the order of the enumeration.
std::span<const RightRow> rights();
Role least_role(Right right);
bool has(const Caller& caller, Right right);

}  // namespace gpu_platform::model
