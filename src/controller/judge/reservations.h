#pragma once

#include "base/result.h"
#include "base/units.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/event.h"
#include "scheduling/plan_cycle.h"
#include "store/store.h"

// Making and cancelling reservations. Changes: reservation_change.h. Their jobs: reserved_jobs.h.

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
base::Result<model::ReservationEnded> judge_cancellation(const State& state,
                                                         const model::Caller& caller,
                                                         const model::CancelReservation& command);

}  // namespace gpu_platform::controller
