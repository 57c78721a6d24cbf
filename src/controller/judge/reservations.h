#pragma once

#include "base/result.h"
#include "base/units.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/event.h"
#include "store/store.h"

// Reservations: who may make them, of which GPUs, and who may be in them.

namespace gpu_platform::controller {

// `cluster`: the state's, for a trial; it is left as it was.
base::Result<model::ReservationMade> judge_reservation(const State& state,
                                                       scheduling::Cluster& cluster,
                                                       const model::Caller& caller,
                                                       const model::MakeReservation& command,
                                                       base::Instant now, store::Headroom headroom);
base::Result<model::ReservationEnded> judge_cancellation(const State& state,
                                                         const model::Caller& caller,
                                                         const model::CancelReservation& command);

// A submission to a reservation: whether it may be, and from when to when it is then.
base::Status enter_reservation(const State& state, model::JobSpec& spec, base::Instant now);
// `earliest`: when it could start at the earliest, or did.
base::Status check_reservation_times(const State& state, const model::JobSpec& spec,
                                     base::Instant earliest);
// More time for a job that runs, not into a reservation of others and not past its own.
base::Status check_no_reservation_passed(const State& state, const model::Job& job,
                                         base::Duration time_limit);

// Those that are over by now.
Events ended_reservations(const State& state, base::Instant now);
// The ends of jobs that wait for a reservation which is not there (any more): a job is never
// started outside of the reservation that it asks for.
Events jobs_without_reservation(const State& state);

}  // namespace gpu_platform::controller
