#pragma once

#include "base/result.h"
#include "base/units.h"
#include "controller/judge/events.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/event.h"
#include "scheduling/plan_cycle.h"
#include "store/store.h"

// Making, changing and ending reservations. Their jobs: reserved_jobs.h.

namespace gpu_platform::controller {

// What a reservation must fit among, besides the state.
struct ReservationBasis {
  scheduling::Cluster& cluster;  // the state's, for a trial; it is left as it was
  const scheduling::PlannedStart* promised = nullptr;  // to a waiting job; null: nothing is
};

base::Result<model::ReservationMade> judge_reservation(const State& state,
                                                       const ReservationBasis& basis,
                                                       const model::Caller& caller,
                                                       const model::MakeReservation& command,
                                                       base::Instant now, store::Headroom headroom);
// Returns the change and what follows from it for the jobs that wait for the reservation: those
// that it admits no longer, or that would never have the time, are ended. Nothing if nothing
// changes.
base::Result<Events> judge_reservation_change(const State& state, const ReservationBasis& basis,
                                              const model::Caller& caller,
                                              const model::ChangeReservation& command,
                                              base::Instant now, store::Headroom headroom);
base::Result<model::ReservationEnded> judge_cancellation(const State& state,
                                                         const model::Caller& caller,
                                                         const model::CancelReservation& command);

// Returns the ends of the reservations that are over by now, and the next occurrences of those that
// repeat themselves.
Events ended_reservations(const State& state, base::Instant now);

}  // namespace gpu_platform::controller
