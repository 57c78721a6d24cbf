#pragma once

#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/reservation.h"
#include "scheduling/plan_cycle.h"

// Which GPUs a reservation takes, and what stands in its way: other reservations, running jobs and
// promised starts.

namespace gpu_platform::controller {

// Nodes or a number of GPUs, not both.
base::Status check_which_gpus(const model::MakeReservation& command);
// Chooses its GPUs. The cluster is left as it was.
base::Status choose_parts(const State& state, scheduling::Cluster& cluster,
                          const model::MakeReservation& command, model::Reservation& reservation);
base::Status check_overlap(const State& state, const model::Reservation& reservation);

// Returns the attempts that by their time limits may still be on its GPUs when it begins, sorted.
std::vector<model::AttemptId> running_into(const State& state,
                                           const model::Reservation& reservation);
// Attempts that are being ended are gone in a moment.
base::Status check_no_job_runs(const State& state, const model::Reservation& reservation,
                               const std::vector<model::AttemptId>& running);
// Jobs are being stopped for one that waits, and lose their work, or a start has been promised.
// `promised`: to a waiting job; null: nothing is.
base::Status check_nothing_promised(const State& state, const model::Reservation& reservation,
                                    const scheduling::PlannedStart* promised, base::Instant now);

}  // namespace gpu_platform::controller
