#include "controller/job_budget.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "accounting/job_budget.h"
#include "base/parse.h"
#include "model/job_spec.h"
#include "scheduling/explain/job_places.h"

namespace gpu_platform::controller {

using accounting::ExactCost;
using model::Attempt;
using model::Job;

namespace {

accounting::MeterTerms terms_of_budgets(const State& state) {
  return {state.nodes, *state.prices, *state.policy};
}

std::string gpu_type_in(const State& state, const model::Allocation& allocation) {
  for (const model::NodeAllocation& part : allocation.nodes) {
    if (part.grants.empty()) continue;
    const model::Node* node = state.nodes.find(part.node.value);
    return node->gpus.at(part.grants.front().gpu_index).info.type;
  }
  return {};
}

std::string too_little(ExactCost rest, const model::JobSpec& spec, std::string_view where) {
  return fmt::format("{} of its budget of {} is left, which pays for less than a minute{}",
                     base::written(std::max(rest, ExactCost()).floor()),
                     base::written(spec.budget.value()), where);
}

std::string price_hint(std::string_view gpu_type) {
  return fmt::format("set one with 'gpu-platform prices set PRICE --gpu-type {}'", gpu_type);
}

}  // namespace

std::optional<base::Duration> limit_by_budget(const State& state, const Job& job,
                                              const Attempt& attempt, base::Instant from) {
  if (!job.spec->budget) return std::nullopt;
  const accounting::MeterTerms terms = terms_of_budgets(state);
  return accounting::paid_time(terms, job, attempt, accounting::rest_of_budget(terms, job), from);
}

bool changes_limit(const model::JobChanged& change) {
  return change.to.get(&model::JobSpec::time_limit) != nullptr ||
         change.to.get(&model::JobSpec::budget) != nullptr;
}

std::string why_unpaid(const State& state, const Job& job, const model::Allocation& allocation,
                       base::Instant now) {
  if (!job.spec->budget) return {};
  const accounting::MeterTerms terms = terms_of_budgets(state);
  Attempt attempt;
  attempt.allocation = allocation;
  attempt.gpu_type = gpu_type_in(state, allocation);
  if (!accounting::is_priced(terms, attempt, now)) {
    return fmt::format("GPUs of type {} have no price, so its budget cannot be kept: {}",
                       attempt.gpu_type, price_hint(attempt.gpu_type));
  }
  const ExactCost rest = accounting::rest_of_budget(terms, job);
  const auto time = accounting::paid_time(terms, job, attempt, rest, now);
  if (!time || *time >= accounting::kLeastPaidTime) return {};
  const base::Duration limit = model::limit_at_speed(job.spec->time_limit, allocation.speed);
  if (*time + base::seconds(1) > limit) return {};  // all of a short limit is paid for
  return too_little(rest, *job.spec,
                    attempt.gpu_type.empty() ? std::string() : " on " + attempt.gpu_type);
}

std::string why_not_again(const State& state, const Job& job, const Attempt& as_ended,
                          base::Instant now) {
  if (!job.spec->budget) return {};
  const accounting::MeterTerms terms = terms_of_budgets(state);
  Job then = job;
  then.attempts.back() = as_ended;
  const ExactCost rest = accounting::rest_of_budget(terms, then);
  const std::vector<model::JobPlace> places = scheduling::places_of(state.nodes, *job.spec);
  if (places.empty() || accounting::pays_somewhere(terms, *job.spec, places, rest, now)) return {};
  return too_little(rest, *job.spec, {});
}

base::Status check_job_budget(const State& state, const model::JobSpec& spec, base::MicroUsd spent,
                              base::Instant now) {
  if (!spec.budget) return {};
  const std::vector<model::JobPlace> places = scheduling::places_of(state.nodes, spec);
  const ExactCost rest = ExactCost(*spec.budget) - ExactCost(spent);
  const accounting::Cover cover =
      accounting::cover_of(terms_of_budgets(state), spec, places, rest, now);
  if (!cover.has_price) {
    return base::fail(
        base::ErrorCode::kFailedPrecondition,
        fmt::format("budget: GPUs of type {} have no price, so it cannot be kept: {}, or ask for "
                    "other types",
                    cover.where, price_hint(cover.where)),
        "budget");
  }
  if (!cover.time || *cover.time >= accounting::kLeastPaidTime) return {};
  return base::fail(base::ErrorCode::kFailedPrecondition,
                    fmt::format("budget {}: pays for less than a minute{}{}; at least {} is needed",
                                base::written(*spec.budget), cover.where.empty() ? "" : " on ",
                                cover.where, base::written(cover.least + spent)),
                    "budget");
}

base::MicroUsd spent_by(const State& state, const Job& job) {
  const accounting::MeterTerms terms = terms_of_budgets(state);
  ExactCost spent;
  for (const Attempt& attempt : job.attempts) {
    spent += accounting::cost_of_ended(terms, job, attempt);
  }
  return spent.floor();
}

}  // namespace gpu_platform::controller
