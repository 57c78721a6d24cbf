#include "controller/judge/reservation_change.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/utc.h"
#include "controller/judge/reservation_place.h"
#include "controller/judge/reservation_rules.h"
#include "controller/judge/reservation_text.h"
#include "controller/judge/reserved_jobs.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

using model::Reservation;

namespace {

// Attempts of the reservation's own jobs that would not lie in it, and those that were let finish
// already: they go on.
std::vector<model::AttemptId> left_over(const State& state, const Reservation& before,
                                        const Reservation& after) {
  std::vector<model::AttemptId> attempts;
  for (const model::AttemptId id : state.held_attempts) {
    const model::Job& job = *find_job(state, id.job);
    const model::Attempt& attempt = job.attempts.at(id.attempt - 1);
    const auto occurrence = occurrence_at(after, attempt.requested_at);
    const bool is_own = job.spec->request.reservation == before.name;
    const bool stays = is_own && scheduling::lies_in(after, attempt.allocation) && occurrence &&
                       attempt.requested_at + time_limit_of(job, attempt) <= occurrence->end;
    const bool was_let = std::ranges::binary_search(before.let_finish, id);
    if (was_let || (is_own && !stays)) attempts.push_back(id);
  }
  return attempts;
}

Reservation moved_to(const State& state, const Reservation& reservation,
                     const model::Occurrence& next) {
  Reservation moved = reservation;
  moved.begin = next.begin;
  moved.end = next.end;
  moved.let_finish = left_over(state, reservation, moved);
  return moved;
}

// The change with the GPUs as in MakeReservation.
model::MakeReservation where_of(const model::ChangeReservation& command) {
  model::MakeReservation where;
  where.name = command.name;
  where.nodes = command.nodes;
  where.gpus_per_node = command.gpus_per_node;
  where.gpus = command.gpus;
  where.gpu_type = command.gpu_type;
  where.ignore_running = command.ignore_running;
  return where;
}

bool changes_times(const model::ChangeReservation& command) {
  return command.begin || command.end || command.duration || command.repeat || command.until ||
         command.count || command.utc_offset;
}
bool changes_place(const model::ChangeReservation& command) {
  return !command.nodes.empty() || command.gpus_per_node || command.gpus != 0 ||
         !command.gpu_type.empty();
}
bool changes_admitted(const model::ChangeReservation& command) {
  return command.maintenance || command.teams || command.users;
}

// Of the occurrence that has not ended yet; it may have begun.
base::Status change_times(const model::ChangeReservation& command, base::Instant now,
                          Reservation& reservation) {
  const base::Duration length = reservation.length();
  const bool has_begin = command.begin.has_value();
  if (has_begin) reservation.begin = *command.begin;
  if (command.end && command.duration)
    return reservation_invalid("end", "give either end or duration_seconds");
  if (command.duration && *command.duration > model::kLongestReservation) {
    return reservation_refused("duration_seconds", "must not exceed 90 days");
  }
  reservation.end =
      command.end ? *command.end : reservation.begin + command.duration.value_or(length);
  // One that has begun is measured from its begin.
  TRY(check_span(reservation, has_begin ? now : std::min(now, reservation.begin)));
  if (reservation.end <= now) {
    return reservation_refused("end",
                               fmt::format("{} has passed; skip the occurrence, or cancel the "
                                           "reservation",
                                           base::utc(reservation.end)));
  }
  if (command.utc_offset) reservation.utc_offset = *command.utc_offset;
  if (command.repeat) reservation.repeat = *command.repeat;
  if (command.until || command.count) reservation.last_begin = {};
  return set_repeat(reservation,
                    {command.until.value_or(base::Instant()), command.count.value_or(0)});
}

base::Status change_admitted(const State& state, const model::ChangeReservation& command,
                             Reservation& reservation) {
  model::MakeReservation admitted;
  admitted.maintenance = command.maintenance.value_or(false);
  admitted.teams = command.teams.value_or(std::vector<std::string>());
  admitted.users = command.users.value_or(std::vector<std::string>());
  TRY(check_admitted(state, admitted));
  reservation.maintenance = admitted.maintenance;
  reservation.teams = sorted_names(std::move(admitted.teams));
  reservation.users = sorted_names(std::move(admitted.users));
  return {};
}

base::Status check_running(const State& state, const Reservation& before, bool ignore_running,
                           Reservation& after) {
  after.let_finish = left_over(state, before, after);
  std::vector<model::AttemptId> others;
  for (const model::AttemptId id : running_into(state, after)) {
    const bool is_own = find_job(state, id.job)->spec->request.reservation == before.name;
    if (!is_own && !std::ranges::binary_search(after.let_finish, id)) others.push_back(id);
  }
  if (!ignore_running) TRY(check_no_job_runs(state, after, others));
  after.let_finish.insert(after.let_finish.end(), others.begin(), others.end());
  std::ranges::sort(after.let_finish);
  return {};
}

// The times that the job has from its reservation follow it; its own stay.
std::optional<model::JobChanged> followed(const State& state, const model::Job& job,
                                          const Reservation& before, const Reservation& after,
                                          const std::string& by) {
  model::JobChanged change{.job = job.id, .to = {}, .dependencies = {}, .by = by};
  if (job.spec->begin == before.begin && after.begin != before.begin) {
    change.to.set(&model::JobSpec::begin, after.begin);
  }
  const base::Instant deadline = deadline_in(state, before);
  if (deadline.is_set() && job.spec->deadline == deadline) {
    change.to.set(&model::JobSpec::deadline, deadline_in(state, after));
  }
  change.to.drop_what_is_so(*job.spec);
  if (change.to.empty()) return std::nullopt;
  return change;
}

void add_followers(const State& state, const Reservation& before, const Reservation& after,
                   const std::string& by, base::Instant now, Events& events) {
  const auto waiting = state.admission_gates.of_reservations().find(before.name);
  if (waiting == state.admission_gates.of_reservations().end()) return;
  for (const model::JobId id : waiting->second) {
    const model::Job& job = *find_job(state, id);
    const bool is_admitted = admits(after, *job.spec, *state.policy->organisation);
    if (is_admitted && occurrence_with_room(after, now, needed_by(state, *job.spec))) {
      if (auto change = followed(state, job, before, after, by)) {
        events.push_back(*std::move(change));
      }
      continue;
    }
    events.push_back(model::JobEnded{
        id, model::JobTrigger::kCancel, model::EndReason::kReservationEnded, by,
        fmt::format("its reservation {} was changed and {}", before.name,
                    is_admitted ? "has too little time for it" : "does not admit it any more")});
  }
}

base::Result<Reservation> changed(const State& state, const ReservationBasis& basis,
                                  const model::ChangeReservation& command,
                                  const Reservation& before, base::Instant now) {
  Reservation after = before;
  if (command.skip) {
    if (changes_times(command) || changes_place(command) || changes_admitted(command)) {
      return reservation_invalid("skip", "cannot be combined with other changes");
    }
    const auto next = occurrence_after(before, before.end);
    if (!next) {
      return reservation_refused(
          "skip", fmt::format("no other occurrence follows; cancel {}", before.name));
    }
    return moved_to(state, before, *next);
  }
  if (changes_times(command)) TRY(change_times(command, now, after));
  if (changes_admitted(command)) TRY(change_admitted(state, command, after));
  if (changes_place(command)) {
    const model::MakeReservation where = where_of(command);
    TRY(check_which_gpus(where));
    TRY(choose_parts(state, basis.cluster, where, after));
  }
  TRY(check_overlap(state, after));
  TRY(check_running(state, before, command.ignore_running, after));
  const bool takes_others = changes_times(command) || changes_place(command);
  if (takes_others && !command.force) {
    TRY(check_nothing_promised(state, after, basis.promised, now));
  }
  return after;
}

}  // namespace

base::Result<Events> judge_reservation_change(const State& state, const ReservationBasis& basis,
                                              const model::Caller& caller,
                                              const model::ChangeReservation& command,
                                              base::Instant now, store::Headroom headroom) {
  TRY(check_may_reserve(caller, "change"));
  TRY(check_room_for_reservations(headroom));
  TRY_ASSIGN(const Reservation* before, find_reservation(state, command.name));
  if (!command.skip && !changes_times(command) && !changes_place(command) &&
      !changes_admitted(command)) {
    return reservation_invalid("name", "give at least one change");
  }
  TRY_ASSIGN(Reservation after, changed(state, basis, command, *before, now));
  Events events;
  if (after == *before) return events;
  events.push_back(model::ReservationChanged{after, caller.user});
  add_followers(state, *before, after, caller.user, now, events);
  return events;
}

Events ended_reservations(const State& state, base::Instant now) {
  Events events;
  for (const auto& [name, reservation] : state.books->reservations.all()) {
    if (reservation.end > now) continue;
    if (const auto next = occurrence_after(reservation, now)) {
      events.push_back(model::ReservationChanged{moved_to(state, reservation, *next), {}});
    } else {
      events.push_back(model::ReservationEnded{name, {}});
    }
  }
  return events;
}

}  // namespace gpu_platform::controller
