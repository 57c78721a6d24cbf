#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "controller/state.h"
#include "model/event.h"
#include "model/job.h"

// Budgets of jobs of their own (JobSpec::budget): they are refused, or shorten the limits of
// attempts, or end the job. Jobs without one cost nothing here.

namespace gpu_platform::controller {

// Returns how long an attempt of the job that starts, or started, then may run by the job's budget;
// nothing if it sets no limit. The attempt has its allocation and its type.
std::optional<base::Duration> limit_by_budget(const State& state, const model::Job& job,
                                              const model::Attempt& attempt, base::Instant from);

// Returns whether the change is one of the time that the job may run.
bool changes_limit(const model::JobChanged& change);

// Returns why the job cannot start there by its budget, as a sentence; empty: it can.
std::string why_unpaid(const State& state, const model::Job& job,
                       const model::Allocation& allocation, base::Instant now);

// The same of a job whose attempt `as_ended` has just ended, wherever it would start next.
std::string why_not_again(const State& state, const model::Job& job, const model::Attempt& as_ended,
                          base::Instant now);

// Refuses a budget that pays for less than a minute on the dearest GPUs that the job accepts, or
// GPUs without a price. `spent`: by attempts of it. Cost: the GPUs of all nodes.
base::Status check_job_budget(const State& state, const model::JobSpec& spec, base::MicroUsd spent,
                              base::Instant now);

// Returns what the attempts of the job have cost that have ended, cut off.
base::MicroUsd spent_by(const State& state, const model::Job& job);

}  // namespace gpu_platform::controller
