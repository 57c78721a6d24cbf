#include "controller/judge/reserved_jobs.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/utc.h"
#include "controller/judge/reservation_text.h"
#include "model/job_spec.h"
#include "scheduling/placement/place.h"
#include "scheduling/trial.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Reservation;
using model::ReservationPart;

namespace {

// Returns whether the team is one of the reservation's teams or below one.
bool is_below_one_of(const model::Organisation& organisation, std::string team,
                     const std::vector<std::string>& teams) {
  while (!team.empty()) {
    if (std::ranges::binary_search(teams, team)) return true;
    const model::Team* found = find_team(organisation, team);
    team = found == nullptr ? std::string() : found->parent;
  }
  return false;
}

// Returns whether the reservation could hold the request if it were empty and wholly in service.
bool could_hold(const Reservation& reservation, const base::PersistentMap<model::Node>& nodes,
                const model::ResourceRequest& request) {
  const auto inside = scheduling::request_inside(reservation, request);
  if (!inside) return false;
  scheduling::Cluster cluster;
  for (const ReservationPart& part : reservation.parts) {
    const model::Node* node = nodes.find(part.node.value);
    if (node != nullptr) cluster.update(model::as_idle(*node));
  }
  scheduling::Trial trial(cluster);
  for (const ReservationPart& part : reservation.parts) {
    if (part.whole_node || nodes.find(part.node.value) == nullptr) continue;
    trial.withhold(part.node, {.is_up = true, .gpus = ~part.gpus, .cpus = 0, .memory = {}});
  }
  return scheduling::place(trial, *inside).has_value();
}

const Reservation* reservation_of(const State& state, const model::JobSpec& spec) {
  const std::string& name = spec.request.reservation;
  return name.empty() ? nullptr : state.books->reservations.find(name);
}

std::unexpected<base::Error> too_short(const State& state, const Reservation& reservation,
                                       const model::JobSpec& spec, base::Instant start,
                                       const std::optional<model::Occurrence>& occurrence) {
  const base::Duration left =
      occurrence ? occurrence->end - std::max(start, occurrence->begin) : base::Duration();
  const base::Instant from = occurrence ? std::max(start, occurrence->begin) : start;
  return reservation_refused(
      "time_limit_seconds",
      fmt::format("a job must have ended by the end of its reservation: {} has {} left from {}, of "
                  "which {} are kept for stopping it (policies.stop_grace), and the time limit is "
                  "{}",
                  reservation.name, hours_text(std::max(left, base::Duration())), base::utc(from),
                  hours_text(state.policy->stop_grace),
                  hours_text(model::longest_limit(spec.request, spec.time_limit))));
}

}  // namespace

bool admits(const Reservation& reservation, const model::JobSpec& spec,
            const model::Organisation& organisation) {
  return !reservation.maintenance && (std::ranges::binary_search(reservation.users, spec.user) ||
                                      is_below_one_of(organisation, spec.team, reservation.teams));
}

base::Duration needed_by(const State& state, const model::JobSpec& spec) {
  return model::longest_limit(spec.request, spec.time_limit) + state.policy->stop_grace;
}

base::Instant deadline_in(const State& state, const Reservation& reservation) {
  const auto last = last_occurrence(reservation);
  return last ? last->end + (base::Duration() - state.policy->stop_grace) : base::Instant();
}

base::Instant start_of(const model::Attempt& attempt) {
  return std::max(attempt.requested_at, attempt.started_at);
}

base::Status check_reservation_times(const State& state, const model::JobSpec& spec,
                                     base::Instant earliest) {
  const Reservation* reservation = reservation_of(state, spec);
  if (reservation == nullptr) return {};
  const base::Instant start = std::max(earliest, spec.begin);
  if (occurrence_with_room(*reservation, start, needed_by(state, spec))) return {};
  return too_short(state, *reservation, spec, start, occurrence_after(*reservation, start));
}

base::Status check_end_in_reservation(const State& state, const model::JobSpec& spec,
                                      base::Instant started) {
  const Reservation* reservation = reservation_of(state, spec);
  if (reservation == nullptr) return {};
  const auto occurrence = occurrence_at(*reservation, started);
  if (occurrence && started + needed_by(state, spec) <= occurrence->end) return {};
  return too_short(state, *reservation, spec, started, occurrence);
}

base::Status enter_reservation(const State& state, model::JobSpec& spec, base::Instant now) {
  const std::string& name = spec.request.reservation;
  if (name.empty()) return {};
  const Reservation* reservation = state.books->reservations.find(name);
  if (reservation == nullptr) {
    return base::fail(ErrorCode::kNotFound,
                      fmt::format("reservation: there is no reservation '{}'; {}", name,
                                  names_text(state.books->reservations)),
                      "reservation");
  }
  if (!admits(*reservation, spec, *state.policy->organisation)) {
    return base::fail(
        ErrorCode::kPermissionDenied,
        fmt::format("reservation: {} does not admit jobs of user {}{}: {}", name, spec.user,
                    spec.team.empty() ? "" : " in team " + spec.team, admitted_text(*reservation)),
        "reservation");
  }
  TRY(check_reservation_times(state, spec, now));
  if (!could_hold(*reservation, state.nodes, spec.request)) {
    return reservation_refused(
        "reservation",
        fmt::format("the {} GPU{} of {} on {} node{} could not hold this job, even with "
                    "nothing else running there",
                    reservation->gpu_count(), reservation->gpu_count() == 1 ? "" : "s", name,
                    reservation->parts.size(), reservation->parts.size() == 1 ? "" : "s"));
  }
  const auto occurrence =
      occurrence_with_room(*reservation, std::max(now, spec.begin), needed_by(state, spec));
  if (occurrence->begin > now) spec.begin = std::max(spec.begin, occurrence->begin);
  const base::Instant deadline = deadline_in(state, *reservation);
  if (deadline.is_set()) {
    spec.deadline = spec.deadline.is_set() ? std::min(spec.deadline, deadline) : deadline;
  }
  return {};
}

base::Status check_no_reservation_passed(const State& state, const model::Job& job,
                                         base::Duration time_limit) {
  if (!model::is_active(job.state) || time_limit <= job.spec->time_limit) return {};
  const model::Attempt& attempt = *job.current_attempt();
  const base::Instant start = start_of(attempt);
  const base::Duration limit = model::limit_at_speed(time_limit, attempt.allocation.speed);
  const scheduling::Span span{start, start + limit + state.policy->stop_grace};
  const auto met =
      state.books->reservations.find_in_the_way(job.spec->request, attempt.allocation, span);
  if (!met) return {};
  return reservation_refused(
      "time_limit_seconds",
      fmt::format("reservation {} needs GPUs of job {} from {} on", met->reservation->name,
                  job.id.value, base::utc(met->when.begin)));
}

Events jobs_without_reservation(const State& state) {
  Events events;
  for (const auto& [name, waiting] : state.admission_gates.of_reservations()) {
    if (state.books->reservations.find(name) != nullptr) continue;
    for (const model::JobId id : waiting) {
      events.push_back(model::JobEnded{id,
                                       model::JobTrigger::kCancel,
                                       model::EndReason::kReservationEnded,
                                       {},
                                       fmt::format("its reservation {} has ended", name)});
    }
  }
  return events;
}

}  // namespace gpu_platform::controller
