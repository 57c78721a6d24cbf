#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/units.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "scheduling/plan_cycle.h"

// What time brings. Each answer is for the state as it is: the next one is asked for after the
// events of the last.

namespace gpu_platform::controller {

// The end of a job that can never run as it asked to: no job waits for ever. The end of one may
// decide about others.
std::optional<model::Event> next_hopeless(const State& state, base::Instant now);

// A job whose time has come, behind the last one that was asked about. One that comes in may make
// place for a sibling behind it.
using DueJob = std::pair<base::Instant, model::JobId>;
std::optional<DueJob> next_due(const State& state, const DueJob& after, base::Instant now);
// A job goes back to the queue when its time has come and nothing of its earlier attempts is left,
// unless such an attempt is lost with its node: that node may never tell.
std::optional<model::Event> judge_eligible(const State& state, model::JobId job, base::Instant now);

// The next count of what was used and the next period of GPU-hours, where they are due.
Events judge_counts(const State& state, base::Instant now);

// That the oldest of those not told so yet is overdue.
std::optional<model::Event> next_overdue(const State& state, base::Instant now);

// Jobs with victims that are not told to stop yet.
std::vector<model::JobId> holds_to_carry_out(const State& state);
// The stops of those victims.
Events judge_victims(const State& state, model::JobId beneficiary);

// What a plan comes to. What was held may be given to others in the same plan: it goes first.
Events events_of(const State& state, const scheduling::Plan& plan);

// When something is due although nothing happens; nothing when it never will. `advanced_to`: timers
// up to there have had their turn. `look_again_at`: of the last cycle. Jobs that are due but wait
// for leftovers are woken by the observation that these are gone.
std::optional<base::Instant> next_wakeup(const State& state, base::Instant advanced_to,
                                         std::optional<base::Instant> look_again_at);

}  // namespace gpu_platform::controller
