#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "controller/state.h"
#include "model/command.h"
#include "model/reservation.h"
#include "store/store.h"

// What a reservation of any GPUs must be like. Errors name the field.

namespace gpu_platform::controller {

// The error of a field that is wrong in itself; the message begins with the field.
std::unexpected<base::Error> reservation_invalid(std::string_view field, const std::string& why);
// Without repeats.
std::vector<std::string> sorted_names(std::vector<std::string> names);

base::Status check_may_reserve(const model::Caller& caller, std::string_view verb);
base::Status check_room_for_reservations(store::Headroom headroom);
base::Result<const model::Reservation*> find_reservation(const State& state,
                                                         const std::string& name);

base::Status check_reservation_name(const State& state, const std::string& name);
// It is for the teams and users of the command, or for maintenance.
base::Status check_admitted(const State& state, const model::MakeReservation& command);
base::Result<base::Instant> end_of_reservation(const model::MakeReservation& command,
                                               base::Instant begin);
base::Status check_span(const model::Reservation& reservation, base::Instant now);

struct RepeatLimit {
  base::Instant until;      // not set: no such limit
  std::uint32_t count = 0;  // 0: no such limit
};
// Sets how often it comes again, as its other fields stand, and for how long.
base::Status set_repeat(model::Reservation& reservation, const RepeatLimit& limit);

}  // namespace gpu_platform::controller
