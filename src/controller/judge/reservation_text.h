#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/reservation.h"
#include "scheduling/reservations/reservations.h"

// The words in which judgements about reservations refuse.

namespace gpu_platform::controller {

// A refusal for the state of things; the message begins with the field.
std::unexpected<base::Error> reservation_refused(std::string_view field, const std::string& why);
// "1:30:00"
std::string hours_text(base::Duration duration);
// "a, b and 3 more": the first eight names.
std::string some_of(const std::vector<std::string>& names);
// "there are a, b", or "there is none".
std::string names_text(const scheduling::Reservations& reservations);
// "it is for team a and user b".
std::string admitted_text(const model::Reservation& reservation);

}  // namespace gpu_platform::controller
