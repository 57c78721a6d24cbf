#include "controller/judge/reservation_rules.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/utc.h"
#include "controller/judge/reservation_text.h"
#include "model/access.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Reservation;

std::unexpected<base::Error> reservation_invalid(std::string_view field, const std::string& why) {
  return base::invalid(std::string(field), fmt::format("{}: {}", field, why));
}

std::vector<std::string> sorted_names(std::vector<std::string> names) {
  std::ranges::sort(names);
  const auto repeats = std::ranges::unique(names);
  names.erase(repeats.begin(), repeats.end());
  return names;
}

base::Status check_may_reserve(const model::Caller& caller, std::string_view verb) {
  if (model::may_touch_site(caller)) return {};
  return base::fail(
      ErrorCode::kPermissionDenied,
      fmt::format("user {} may not {} reservations: ask an operator", caller.user, verb));
}

base::Status check_room_for_reservations(store::Headroom headroom) {
  if (headroom == store::Headroom::kAmple) return {};
  return base::fail(ErrorCode::kResourceExhausted,
                    "the disk of the data directory is full: no reservations are made or changed "
                    "until space is freed");
}

base::Result<const Reservation*> find_reservation(const State& state, const std::string& name) {
  if (const Reservation* found = state.books->reservations.find(name)) return found;
  return base::fail(
      ErrorCode::kNotFound,
      fmt::format("there is no reservation '{}'; {}", name, names_text(state.books->reservations)),
      "name");
}

base::Status check_reservation_name(const State& state, const std::string& name) {
  if (!model::is_reservation_name(name)) {
    return reservation_invalid(
        "name", "1 to 64 letters, digits, '-', '_' and '.', first a letter or digit");
  }
  if (state.books->reservations.find(name) != nullptr) {
    return base::fail(
        ErrorCode::kAlreadyExists,
        fmt::format(
            "name: reservation '{}' exists already; choose another name, or cancel it first", name),
        "name");
  }
  // Otherwise these jobs would be in this reservation, to which they were never admitted.
  std::optional<model::JobId> former;
  state.jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (job.spec->request.reservation == name && !former) former = job.id;
  });
  if (!former) return {};
  return reservation_refused("name",
                             fmt::format("job {} of a former reservation '{}' still runs or waits; "
                                         "choose another name, or wait for its end",
                                         former->value, name));
}

base::Status check_admitted(const State& state, const model::MakeReservation& command) {
  const bool names_users = !command.teams.empty() || !command.users.empty();
  if (names_users == command.maintenance) {
    return reservation_invalid(
        "teams", "give either maintenance, or the teams and users that may use the reservation");
  }
  if (command.teams.size() > model::kMaxReservationUsers ||
      command.users.size() > model::kMaxReservationUsers) {
    return reservation_invalid(
        "teams", fmt::format("at most {} teams and {} users", model::kMaxReservationUsers,
                             model::kMaxReservationUsers));
  }
  const model::Organisation& organisation = *state.policy->organisation;
  for (const std::string& team : command.teams) {
    if (organisation.teams.empty() || find_team(organisation, team) != nullptr) continue;
    std::vector<std::string> known;
    for (const model::Team& each : organisation.teams) known.push_back(each.name);
    return base::fail(
        ErrorCode::kNotFound,
        fmt::format("teams: there is no team '{}'; the teams are {}", team, some_of(known)),
        "teams");
  }
  return {};
}

base::Result<base::Instant> end_of_reservation(const model::MakeReservation& command,
                                               base::Instant begin) {
  const bool has_duration = command.duration != base::Duration();
  if (command.end.is_set() == has_duration) {
    return reservation_invalid("end", "give either end or duration_seconds");
  }
  if (command.duration < base::Duration())
    return reservation_invalid("duration_seconds", "must not be negative");
  if (command.duration > model::kLongestReservation) {
    return reservation_refused("duration_seconds", "must not exceed 90 days");
  }
  return has_duration ? begin + command.duration : command.end;
}

base::Status check_span(const Reservation& reservation, base::Instant now) {
  if (reservation.begin < now) {
    return reservation_refused("begin", fmt::format("{} has passed", base::utc(reservation.begin)));
  }
  if (reservation.end <= reservation.begin) {
    return reservation_refused("end",
                               fmt::format("{} is not after begin, {}", base::utc(reservation.end),
                                           base::utc(reservation.begin)));
  }
  if (reservation.end - reservation.begin > model::kLongestReservation) {
    return reservation_refused("end", "a reservation must not last longer than 90 days");
  }
  if (reservation.begin - now > model::kFarthestReservation) {
    return reservation_refused("begin", "must be within the next 366 days");
  }
  return {};
}

base::Status set_repeat(Reservation& reservation, const RepeatLimit& limit) {
  const model::Repeat repeat = reservation.repeat;
  if (limit.until.is_set() && limit.count != 0)
    return reservation_invalid("until", "give either until or count");
  if (repeat == model::Repeat::kNever) {
    if (limit.until.is_set() || limit.count != 0) {
      return reservation_invalid(limit.count != 0 ? "count" : "until", "needs repeat");
    }
    reservation.last_begin = {};
    return {};
  }
  if (reservation.length() > least_period(repeat)) {
    return reservation_refused(
        "repeat", fmt::format("it lasts {}, which is longer than the {} from one {} "
                              "occurrence to the next",
                              hours_text(reservation.length()), hours_text(least_period(repeat)),
                              to_string(repeat)));
  }
  if (!is_day_of(reservation, reservation.begin)) {
    return reservation_refused(
        "begin", fmt::format("{} is not on one of its days ({}; days begin at 0:00 "
                             "UTC plus utc_offset_seconds, which is {})",
                             base::utc(reservation.begin), to_string(repeat),
                             base::whole_milliseconds(reservation.utc_offset) / 1000));
  }
  if (limit.count > model::kMaxOccurrences) {
    return reservation_refused(
        "count", fmt::format("must be at most {}; leave it out to repeat without an end",
                             model::kMaxOccurrences));
  }
  if (limit.count != 0) reservation.last_begin = begin_of_occurrence(reservation, limit.count);
  if (limit.until.is_set()) reservation.last_begin = limit.until;
  if (reservation.last_begin.is_set() && reservation.last_begin < reservation.begin) {
    return reservation_refused(
        "until", fmt::format("{} is before begin, {}", base::utc(reservation.last_begin),
                             base::utc(reservation.begin)));
  }
  return {};
}

}  // namespace gpu_platform::controller
