#include "controller/judge/job_limits.h"

namespace gpu_platform::controller {

using base::ErrorCode;

base::Status check_priority(const State& state, const model::Caller& caller,
                            const model::Priority& priority) {
  const model::PriorityClass highest = state.policy->highest_user_priority;
  if (caller.is_administrator || priority.priority_class >= highest) return {};
  return base::fail(ErrorCode::kPermissionDenied,
                    fmt::format("priority: {} is for administrators here; the highest you may ask "
                                "for is {} (policies.highest_user_priority)",
                                to_string(priority.priority_class), to_string(highest)),
                    "priority");
}

base::Status check_time_limit(const State& state, base::Duration time_limit) {
  const base::Duration longest = state.policy->max_time_limit;
  if (time_limit <= longest) return {};
  return base::fail(
      ErrorCode::kFailedPrecondition,
      fmt::format("time_limit_seconds: {} asked, the longest allowed is {}",
                  time_limit.value() / 1'000'000'000, longest.value() / 1'000'000'000),
      "time_limit_seconds");
}

base::Status check_expected(std::optional<base::Duration> expected, base::Duration time_limit) {
  if (!expected || *expected <= time_limit) return {};
  return base::invalid(
      "expected_time_seconds",
      fmt::format("expected_time_seconds: {} expected, and the time limit is {}; "
                  "say less, or raise the time limit",
                  expected->value() / 1'000'000'000, time_limit.value() / 1'000'000'000));
}

base::Status check_speeds(const State& state, const model::ResourceRequest& request,
                          base::Duration time_limit) {
  const base::Duration longest = state.policy->max_time_limit;
  const base::Duration asked = time_limit == base::Duration() ? longest : time_limit;
  const base::Duration needed = model::longest_limit(request, asked);
  if (needed <= longest) return {};
  return base::fail(
      ErrorCode::kFailedPrecondition,
      fmt::format("time_limit_seconds: {} at the first type's speed come to {} on the "
                  "slowest type of gpu_types, the longest allowed is {}",
                  asked.value() / 1'000'000'000, needed.value() / 1'000'000'000,
                  longest.value() / 1'000'000'000),
      "time_limit_seconds");
}

}  // namespace gpu_platform::controller
