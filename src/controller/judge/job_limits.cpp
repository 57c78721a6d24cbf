#include "controller/judge/job_limits.h"

#include <fmt/format.h>

#include "base/parse.h"
#include "model/access.h"
#include "model/job_spec.h"
#include "scheduling/explain/feasibility.h"

namespace gpu_platform::controller {

using base::ErrorCode;

base::Status check_priority(const State& state, const model::Caller& caller,
                            const model::Priority& priority) {
  const model::PriorityClass highest = state.policy->highest_user_priority;
  if (priority.priority_class >= highest) return {};
  if (model::has(caller, model::Right::kPassLimits)) return {};
  return base::fail(ErrorCode::kPermissionDenied,
                    fmt::format("priority: {} is for administrators here; the highest you may ask "
                                "for is {} (policies.highest_user_priority)",
                                to_string(priority.priority_class), to_string(highest)),
                    "priority");
}

base::Status check_time_limit(const State& state, base::Duration time_limit) {
  const base::Duration longest = state.policy->max_time_limit;
  if (time_limit <= longest) return {};
  return base::fail(ErrorCode::kFailedPrecondition,
                    fmt::format("time_limit_seconds {}: the site's maximum is {} "
                                "(policies.max_job_duration_hours)",
                                base::written(time_limit), base::written(longest)),
                    "time_limit_seconds");
}

base::Status check_expected(std::optional<base::Duration> expected, base::Duration time_limit) {
  if (!expected || *expected <= time_limit) return {};
  return base::invalid("expected_time_seconds",
                       fmt::format("expected_time_seconds {}: the time limit is {}; give a shorter "
                                   "expected time or a longer time limit",
                                   base::written(*expected), base::written(time_limit)));
}

base::Status check_speeds(const State& state, const model::ResourceRequest& request,
                          base::Duration time_limit) {
  const base::Duration longest = state.policy->max_time_limit;
  const base::Duration needed = model::longest_limit(request, time_limit);
  if (needed <= longest) return {};
  return base::fail(
      ErrorCode::kFailedPrecondition,
      fmt::format("time_limit_seconds: {} at the first type's speed is {} on the slowest type "
                  "of gpu_types, which exceeds the site's maximum of {} "
                  "(policies.max_job_duration_hours)",
                  base::written(time_limit), base::written(needed), base::written(longest)),
      "time_limit_seconds");
}

namespace {

std::unexpected<base::Error> could_never_run(const model::QuotaExcess& alone) {
  const bool is_of_hours = alone.kind == model::QuotaKind::kGpuHours;
  return base::fail(ErrorCode::kFailedPrecondition,
                    fmt::format("this job could never run: {}", describe(alone)),
                    is_of_hours ? "time_limit_seconds" : "gpus");
}

// Whether it could run on GPUs of other types.
bool could_run_without(const State& state, const model::JobSpec& spec,
                       std::vector<std::string> types) {
  model::ResourceRequest rest = spec.request;
  rest.barred_types = std::move(types);
  if (rest.cross_node) {
    rest.cross_node = false;
    rest.gpus = 1;
  }
  return scheduling::could_ever_fit(state.nodes, rest, state.policy->sharing).has_value();
}

}  // namespace

// Checks the job alone on an empty cluster: one that exceeds a limit by itself never runs.
base::Status check_could_run(const State& state, const model::JobSpec& spec) {
  const model::Organisation& organisation = *state.policy->organisation;
  if (const auto alone = scheduling::excess_if_started(organisation, spec, {})) {
    return could_never_run(*alone);
  }
  constexpr auto kLasting = model::QuotaKind::kBorrowLimit;
  const scheduling::GpusByType& all = state.books->cluster.totals().gpus_by_type();
  const scheduling::Pools when_empty(scheduling::guarantees_of(organisation, all));
  if (when_empty.is_active() && !when_empty.is_by_type()) {
    const scheduling::PoolBalance& pool = when_empty.all().begin()->second.balance();
    const auto alone = pool.excess_of(scheduling::pool_ask(pool.guarantees(), *state.policy, spec));
    if (alone && alone->kind == kLasting) return could_never_run(*alone);
  }
  auto barred = scheduling::barred_types(organisation, spec, all, scheduling::QuotaLedger());
  if (when_empty.is_by_type()) {
    scheduling::bar_kept_back(when_empty, *state.policy, spec, all, barred, kLasting);
  }
  if (barred.types.empty() || could_run_without(state, spec, std::move(barred.types))) return {};
  return could_never_run(*barred.excess);
}

}  // namespace gpu_platform::controller
