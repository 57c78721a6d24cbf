#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "scheduling/plan_cycle.h"

// The consequences of time. Each answer is for the present state: the caller asks for the next one
// after it has applied the events of the last.

namespace gpu_platform::controller {

// Returns the end of a job that can never run as requested, so that no job waits for ever. The end
// of one job may decide about others.
std::optional<model::Event> next_unstartable(const State& state, base::Instant now);

// Returns the next job that is due, after the last one that was asked about. A job that becomes
// eligible may make room for a sibling behind it.
using DueJob = std::pair<base::Instant, model::JobId>;
std::optional<DueJob> next_due(const State& state, const DueJob& after, base::Instant now);
// Puts a job back into the queue when its time has come and nothing of its earlier attempts is
// left. An attempt that is lost with its node does not count: that node may never report.
std::optional<model::Event> judge_eligible(const State& state, model::JobId job, base::Instant now);

// Returns the next count of usage, the next period of GPU-hours and the next count of budgets, if
// they are due.
Events judge_counts(const State& state, base::Instant now);

// Returns the event that makes the next job overdue.
std::optional<model::Event> next_overdue(const State& state, base::Instant now);

// Returns the beneficiaries with victims that have not been told to stop yet.
std::vector<model::JobId> holds_to_carry_out(const State& state);
// Returns the stops of these victims.
Events judge_victims(const State& state, model::JobId beneficiary);

// Returns the events of a plan. Preemption holds are released first, because the same plan may give
// their resources to other jobs.
Events events_of(const State& state, const scheduling::Plan& plan);

// Returns when something is due although no event happens; nothing if it never will be.
// `advanced_to`: timers up to there have been handled. `look_again_at`: of the last cycle. Jobs
// that are due but wait for leftovers are woken by the observation that these are gone.
std::optional<base::Instant> next_wakeup(const State& state, base::Instant advanced_to,
                                         std::optional<base::Instant> look_again_at);

}  // namespace gpu_platform::controller
