#include "shims/views/job_state.h"

#include <algorithm>
#include <utility>

#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

constexpr StateName kOutOfMemory{"OOM", "OUT_OF_MEMORY"};
constexpr StateName kNodeFail{"NF", "NODE_FAIL"};
constexpr StateName kDeadline{"DL", "DEADLINE"};

struct StateRow {
  v1::JobState platform;
  StateName slurm;
};
constexpr StateRow kStates[] = {
    {v1::JOB_STATE_HELD, {"PD", "PENDING"}},        {v1::JOB_STATE_PENDING, {"PD", "PENDING"}},
    {v1::JOB_STATE_QUEUED, {"PD", "PENDING"}},      {v1::JOB_STATE_STARTING, {"CF", "CONFIGURING"}},
    {v1::JOB_STATE_RUNNING, {"R", "RUNNING"}},      {v1::JOB_STATE_STOPPING, {"CG", "COMPLETING"}},
    {v1::JOB_STATE_SUSPENDED, {"S", "SUSPENDED"}},  {v1::JOB_STATE_PREEMPTED, {"PR", "PREEMPTED"}},
    {v1::JOB_STATE_COMPLETED, {"CD", "COMPLETED"}}, {v1::JOB_STATE_FAILED, {"F", "FAILED"}},
    {v1::JOB_STATE_CANCELLED, {"CA", "CANCELLED"}}, {v1::JOB_STATE_TIMED_OUT, {"TO", "TIMEOUT"}},
    {v1::JOB_STATE_FAILED, kOutOfMemory},           {v1::JOB_STATE_FAILED, kNodeFail},
    {v1::JOB_STATE_CANCELLED, kDeadline},
};

// States of Slurm that no job here ever has: filters may name them and find nothing.
constexpr StateName kNever[] = {
    {"BF", "BOOT_FAIL"}, {"RD", "RESV_DEL_HOLD"}, {"RF", "REQUEUE_FED"}, {"RH", "REQUEUE_HOLD"},
    {"RQ", "REQUEUED"},  {"RS", "RESIZING"},      {"RV", "REVOKED"},     {"SE", "SPECIAL_EXIT"},
    {"SI", "SIGNALING"}, {"SO", "STAGE_OUT"},     {"ST", "STOPPED"},
};

// "JOB_STATE_HELD" as queries of the daemon have it.
std::string name_of_state(v1::JobState state) {
  constexpr std::string_view kOfEnum = "JOB_STATE_";
  return v1::JobState_Name(state).substr(kOfEnum.size());
}

}  // namespace

StateName state_of(const v1::Job& job) {
  if (job.state() == v1::JOB_STATE_FAILED) {
    if (job.reason() == v1::END_REASON_OUT_OF_MEMORY) return kOutOfMemory;
    if (job.lost() != v1::LOST_UNSPECIFIED) return kNodeFail;
  }
  if (job.state() == v1::JOB_STATE_CANCELLED && job.reason() == v1::END_REASON_DEADLINE)
    return kDeadline;
  const auto row = std::ranges::find(kStates, job.state(), &StateRow::platform);
  return row == std::end(kStates) ? StateName{"?", "UNKNOWN"} : row->slurm;
}

StateName recorded_state_of(const v1::Job& job) {
  const StateName state = state_of(job);
  if (state.code == "CF") return {"PD", "PENDING"};
  if (state.code == "CG") return {"R", "RUNNING"};
  return state;
}

std::optional<std::vector<std::string>> platform_states(std::string_view name) {
  const std::string wanted = upper_case(name);
  std::vector<std::string> states;
  for (const StateRow& row : kStates) {
    if (row.slurm.code == wanted || row.slurm.name == wanted)
      states.push_back(name_of_state(row.platform));
  }
  const bool is_known = !states.empty() || std::ranges::any_of(kNever, [&](const StateName& state) {
    return state.code == wanted || state.name == wanted;
  });
  return is_known ? std::optional(states) : std::nullopt;
}

bool is_in_state(const StateName& state, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    const std::string wanted = upper_case(name);
    return wanted == state.code || wanted == state.name;
  });
}

bool has_ended(const v1::Job& job) {
  return job.state() == v1::JOB_STATE_COMPLETED || job.state() == v1::JOB_STATE_FAILED ||
         job.state() == v1::JOB_STATE_CANCELLED || job.state() == v1::JOB_STATE_TIMED_OUT;
}

std::string reason_of(const v1::Job& job) {
  constexpr std::pair<std::string_view, std::string_view> kWaiting[] = {
      {"NO_CAPACITY", "Resources"},
      {"PRIORITY", "Priority"},
      {"BACKOFF", "BeginTime"},
      {"HELD", "JobHeldUser"},
      {"HELD_BY_USER", "JobHeldUser"},
      {"HELD_BY_ADMINISTRATOR", "JobHeldAdmin"},
      {"NO_NODE", "ReqNodeNotAvail"},
      {"NOT_EVALUATED", "None"},
      {"HELD_BY_PLATFORM", "JobHeldAdmin"},
      {"PREEMPTING", "Resources"},
      {"BEGIN_TIME", "BeginTime"},
      {"DEPENDENCY", "Dependency"},
      {"ARRAY_LIMIT", "JobArrayTaskLimit"}};
  if (const std::string code = job.wait_reason().code(); !code.empty()) {
    const auto row = std::ranges::find(kWaiting, std::string_view(code),
                                       &std::pair<std::string_view, std::string_view>::first);
    return row == std::end(kWaiting) ? code : std::string(row->second);
  }
  const StateName state = state_of(job);
  if (state.code == "DL") return "DeadLine";
  if (job.reason() == v1::END_REASON_DEPENDENCY_FAILED) return "DependencyNeverSatisfied";
  if (state.code == "TO") return "TimeLimit";
  if (state.code == "OOM") return "OutOfMemory";
  if (state.code == "NF") return "NodeDown";
  if (job.reason() == v1::END_REASON_LAUNCH_FAILED) return "JobLaunchFailure";
  if (state.code == "F") return "NonZeroExitCode";
  return "None";
}

}  // namespace gpu_platform::shims
