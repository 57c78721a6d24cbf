#pragma once

#include "base/result.h"
#include "base/units.h"
#include "controller/judge/events.h"
#include "controller/judge/reservations.h"
#include "controller/state.h"
#include "model/command.h"
#include "store/store.h"

// Changing reservations, and what becomes of them as time passes.

namespace gpu_platform::controller {

// Returns the change and what follows from it for the jobs that wait for the reservation: those
// that it admits no longer, or that would never have the time, are ended. Nothing if nothing
// changes.
base::Result<Events> judge_reservation_change(const State& state, const ReservationBasis& basis,
                                              const model::Caller& caller,
                                              const model::ChangeReservation& command,
                                              base::Instant now, store::Headroom headroom);

// Returns the ends of the reservations that are over by now, and the next occurrences of those that
// repeat themselves.
Events ended_reservations(const State& state, base::Instant now);

}  // namespace gpu_platform::controller
