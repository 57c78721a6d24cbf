#include "model/access.h"
#include "model/job_spec.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace gpu_platform::model {

namespace {

constexpr std::array kRights = {
    RightRow{Right::kSeeJobs, Role::kOperator, "sees the jobs of all users"},
    RightRow{Right::kSeeCommands, Role::kOperator,
             "sees the commands of all jobs, and of all processes on GPUs"},
    RightRow{Right::kSeeOutput, Role::kAdmin, "reads the output of all jobs"},
    RightRow{Right::kSeeUsage, Role::kOperator, "sees the usage of all users"},
    RightRow{Right::kPassLimits, Role::kOperator,
             "gives a job a priority above policies.highest_user_priority, and a running job more "
             "time"},
    RightRow{Right::kFillQueue, Role::kAdmin,
             "takes the part of the queue that scheduling.percent_for_root keeps, and is not held "
             "to the limits of one user"},
    RightRow{Right::kChargeAnyTeam, Role::kAdmin, "charges a job to a team of others"},
};

}  // namespace

bool may_touch_team(const Caller& caller, std::string_view team) {
  if (caller.reach == Reach::kAll) return true;
  if (caller.reach == Reach::kOwn || caller.teams == nullptr) return false;
  return std::ranges::binary_search(caller.teams->coordinates, team);
}

bool manages(const Caller& caller, const JobSpec& spec) {
  if (caller.reach == Reach::kAll) return true;
  return may_touch_team(caller, spec.team) && !caller.teams->is_below(spec.user, spec.uid);
}

bool may_touch(const Caller& caller, const JobSpec& spec) {
  return caller.uid == spec.uid || manages(caller, spec);
}

base::Status check_may_touch(const Caller& caller, JobId job, const JobSpec& spec) {
  if (may_touch(caller, spec)) return {};
  return base::fail(base::ErrorCode::kPermissionDenied,
                    fmt::format("job {} belongs to another user", job.value), "id");
}

bool may_touch_site(const Caller& caller) {
  return caller.reach == Reach::kAll;
}

bool may_touch_tokens_of(const Caller& caller, std::uint32_t uid) {
  return caller.uid == uid || caller.reach == Reach::kAll;
}

std::span<const RightRow> rights() {
  return kRights;
}

Role least_role(Right right) {
  return kRights[static_cast<std::size_t>(right)].least;
}

bool has(const Caller& caller, Right right) {
  return caller.role >= least_role(right);
}

}  // namespace gpu_platform::model
