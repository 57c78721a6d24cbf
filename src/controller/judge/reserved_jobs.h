#pragma once

#include "base/result.h"
#include "base/units.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "model/job.h"
#include "model/reservation.h"

// Jobs and reservations: which jobs a reservation admits, and the times that a job has in it.

namespace gpu_platform::controller {

// Checks that a job may be submitted to its reservation, and sets its times to the reservation's.
base::Status enter_reservation(const State& state, model::JobSpec& spec, base::Instant now);
// `earliest`: the earliest time at which the job could start.
base::Status check_reservation_times(const State& state, const model::JobSpec& spec,
                                     base::Instant earliest);
// The same for a job that runs: it stays within the occurrence in which it started.
base::Status check_end_in_reservation(const State& state, const model::JobSpec& spec,
                                      base::Instant started);
// Checks that a running job with more time enters no reservation of others and does not pass the
// end of its own.
base::Status check_no_reservation_passed(const State& state, const model::Job& job,
                                         base::Duration time_limit);
// Returns the ends of jobs that wait for a reservation which does not exist (any more): a job never
// starts outside of the reservation that it asks for.
Events jobs_without_reservation(const State& state);

bool admits(const model::Reservation& reservation, const model::JobSpec& spec,
            const model::Organisation& organisation);
// The time that the job needs in a reservation: its time limit and the grace.
base::Duration needed_by(const State& state, const model::JobSpec& spec);
// By when a job of the reservation must have started to stop; unset: the reservation never ends.
base::Instant deadline_in(const State& state, const model::Reservation& reservation);
// The time limit counts from this moment at the latest: a node's clock may be behind ours.
base::Instant start_of(const model::Attempt& attempt);

}  // namespace gpu_platform::controller
