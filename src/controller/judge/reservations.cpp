#include "controller/judge/reservations.h"

#include <utility>

#include <fmt/format.h>

#include "controller/judge/reservation_place.h"
#include "controller/judge/reservation_rules.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Reservation;

base::Result<model::ReservationMade> judge_reservation(
    const State& state, const ReservationBasis& basis, const model::Caller& caller,
    const model::MakeReservation& command, base::Instant now, store::Headroom headroom) {
  TRY(check_may_reserve(caller, "make"));
  TRY(check_room_for_reservations(headroom));
  TRY(check_reservation_name(state, command.name));
  TRY(check_admitted(state, command));
  TRY(check_which_gpus(command));
  if (state.books->reservations.all().size() >= model::kMaxReservations) {
    return base::fail(ErrorCode::kResourceExhausted,
                      fmt::format("there are {} reservations, which is the limit; cancel some",
                                  model::kMaxReservations));
  }
  Reservation reservation;
  reservation.name = command.name;
  reservation.begin = command.begin.is_set() ? command.begin : now;
  TRY_ASSIGN(reservation.end, end_of_reservation(command, reservation.begin));
  TRY(check_span(reservation, now));
  reservation.repeat = command.repeat;
  reservation.utc_offset = command.utc_offset;
  TRY(set_repeat(reservation, {command.until, command.count}));
  reservation.maintenance = command.maintenance;
  reservation.teams = sorted_names(command.teams);
  reservation.users = sorted_names(command.users);
  reservation.made_by = caller.user;
  reservation.made_at = now;
  TRY(choose_parts(state, basis.cluster, command, reservation));
  TRY(check_overlap(state, reservation));
  reservation.let_finish = running_into(state, reservation);
  if (!command.ignore_running) {
    TRY(check_no_job_runs(state, reservation, reservation.let_finish));
  }
  if (!command.force) TRY(check_nothing_promised(state, reservation, basis.promised, now));
  return model::ReservationMade{std::move(reservation)};
}

base::Result<model::ReservationEnded> judge_cancellation(const State& state,
                                                         const model::Caller& caller,
                                                         const model::CancelReservation& command) {
  TRY(check_may_reserve(caller, "cancel"));
  TRY_ASSIGN(const Reservation* reservation, find_reservation(state, command.name));
  return model::ReservationEnded{reservation->name, caller.user};
}

}  // namespace gpu_platform::controller
