#pragma once

#include <optional>
#include <span>
#include <string>

#include "accounting/budget_meter.h"
#include "accounting/exact_cost.h"
#include "base/units.h"
#include "model/job.h"
#include "model/job_place.h"

// What a job's own budget (JobSpec::budget) pays for. A job with a budget has one attempt after the
// other, and each gets what the attempts before it have left.

namespace gpu_platform::accounting {

// An attempt for which less is left does not start.
inline constexpr base::Duration kLeastPaidTime = base::minutes(1);

// Returns what the attempt, which has ended, costs its owner: the use that is billed, at the prices
// of its time and the discounts of now.
ExactCost cost_of_ended(const MeterTerms& terms, const model::Job& job,
                        const model::Attempt& attempt);

// Returns what the attempts of the job that have ended leave of its budget, which it has. It may be
// negative.
ExactCost rest_of_budget(const MeterTerms& terms, const model::Job& job);

// Returns how long an attempt with the allocation and the type of `attempt` may run from then on
// until it has cost so much: whole seconds, cut off. Nothing: longer than any time limit. Prices
// that are known to change count; GPUs without a price cost nothing.
std::optional<base::Duration> paid_time(const MeterTerms& terms, const model::Job& job,
                                        const model::Attempt& attempt, ExactCost rest,
                                        base::Instant from);

// Returns whether all GPUs of the attempt have a price at that time.
bool is_priced(const MeterTerms& terms, const model::Attempt& attempt, base::Instant at);

// What an amount pays for where the job costs the most.
struct Cover {
  std::string where;                   // the type of GPU; empty: cores and memory
  bool has_price = true;               // false: `where` has none, and nothing else is known
  std::optional<base::Duration> time;  // whole seconds, shorter than the limit; absent: all of it
  base::MicroUsd least;                // what pays for kLeastPaidTime, rounded up
};

// Returns the same at the prices of that time. Of several places it is one without a price, else
// the dearest of those where the limit is not paid for, else the dearest of all.
Cover cover_of(const MeterTerms& terms, const model::JobSpec& spec,
               std::span<const model::JobPlace> places, ExactCost amount, base::Instant at);

// Returns whether the amount pays for kLeastPaidTime, or for a limit that is shorter, on one of the
// places at least, at the prices of that time.
bool pays_somewhere(const MeterTerms& terms, const model::JobSpec& spec,
                    std::span<const model::JobPlace> places, ExactCost amount, base::Instant at);

// "1 h 49 min", "12 min 5 s": cut off.
std::string paid_time_text(base::Duration time);
// "budget 10.00: pays for 1 h 49 min on H100-80GB; the job ends then". The cover has a time.
std::string describe(const Cover& cover, base::MicroUsd budget);

}  // namespace gpu_platform::accounting
