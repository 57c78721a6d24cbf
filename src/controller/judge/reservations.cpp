#include "controller/judge/reservations.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/utc.h"
#include "controller/judge/reservation_text.h"
#include "controller/judge/reserved_jobs.h"
#include "model/access.h"
#include "scheduling/placement/place.h"
#include "scheduling/trial.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Reservation;
using model::ReservationPart;

namespace {

std::unexpected<base::Error> wrong(std::string_view field, const std::string& why) {
  return base::invalid(std::string(field), fmt::format("{}: {}", field, why));
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::ranges::sort(names);
  const auto repeats = std::ranges::unique(names);
  names.erase(repeats.begin(), repeats.end());
  return names;
}

std::uint64_t all_gpus_of(const model::Node& node) {
  std::uint64_t gpus = 0;
  for (std::size_t i = 0; i < std::min(node.gpus.size(), scheduling::kMaxGpusPerNode); ++i) {
    gpus |= std::uint64_t{1} << i;
  }
  return gpus;
}

// Returns the latest time at which the attempt may still be there. It is the same for an attempt
// that is being ended, since nothing better is known.
base::Instant last_instant(const model::Job& job, const model::Attempt& attempt,
                           base::Duration grace) {
  return start_of(attempt) + time_limit_of(job, attempt) + grace;
}

base::Result<base::Instant> end_of(const model::MakeReservation& command, base::Instant begin) {
  const bool has_duration = command.duration != base::Duration();
  if (command.end.is_set() == has_duration) {
    return wrong("end", "give either end or duration_seconds");
  }
  if (command.duration < base::Duration()) return wrong("duration_seconds", "must not be negative");
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

struct Limit {
  base::Instant until;
  std::uint32_t count = 0;
};

// Sets how often it comes again, as its other fields stand, and for how long.
base::Status set_repeat(Reservation& reservation, const Limit& limit) {
  const model::Repeat repeat = reservation.repeat;
  if (limit.until.is_set() && limit.count != 0) return wrong("until", "give either until or count");
  if (repeat == model::Repeat::kNever) {
    if (limit.until.is_set() || limit.count != 0) {
      return wrong(limit.count != 0 ? "count" : "until", "needs repeat");
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

base::Status check_which(const model::MakeReservation& command) {
  if (command.nodes.empty() == (command.gpus == 0)) {
    return wrong("nodes", "give either nodes or gpus");
  }
  if (command.nodes.size() > model::kMaxReservationNodes) {
    return wrong("nodes", fmt::format("{} nodes exceed the limit of {}", command.nodes.size(),
                                      model::kMaxReservationNodes));
  }
  if (command.nodes.empty() && command.gpus_per_node) {
    return wrong("gpus_per_node", "needs nodes; without nodes give gpus");
  }
  if (command.gpus_per_node && *command.gpus_per_node == 0) {
    return wrong("gpus_per_node", "must be at least 1; leave it out to reserve whole nodes");
  }
  if (!command.nodes.empty() && !command.gpu_type.empty()) {
    return wrong("gpu_type", "needs gpus; it cannot be combined with nodes");
  }
  return {};
}

// Returns the overlapping part; empty if there is none.
std::string overlapping(const scheduling::Reservations& reservations,
                        const Reservation& reservation) {
  for (const auto& [name, other] : reservations.all()) {
    if (name == reservation.name || !overlap(other, reservation)) continue;
    const model::Occurrence when = *first_common(other, reservation);
    return fmt::format("some of its GPUs are already in reservation {} from {} to {}", name,
                       base::utc(when.begin), base::utc(when.end));
  }
  return {};
}

base::Status check_name(const State& state, const std::string& name) {
  if (!model::is_reservation_name(name)) {
    return wrong("name", "1 to 64 letters, digits, '-', '_' and '.', first a letter or digit");
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
    return wrong("teams",
                 "give either maintenance, or the teams and users that may use the reservation");
  }
  if (command.teams.size() > model::kMaxReservationUsers ||
      command.users.size() > model::kMaxReservationUsers) {
    return wrong("teams", fmt::format("at most {} teams and {} users", model::kMaxReservationUsers,
                                      model::kMaxReservationUsers));
  }
  const model::Organisation& organisation = *state.policy->organisation;
  for (const std::string& team : command.teams) {
    if (organisation.teams.empty() || find_team(organisation, team) != nullptr) continue;
    std::vector<std::string> known;
    for (const model::Team& each : organisation.teams) known.push_back(each.name);
    return base::fail(
        ErrorCode::kInvalidArgument,
        fmt::format("teams: there is no team '{}'; the teams are {}", team, some_of(known)),
        "teams");
  }
  return {};
}

std::vector<model::AttemptId> running_into(const State& state, const Reservation& reservation) {
  std::vector<model::AttemptId> attempts;
  for (const model::AttemptId id : state.held_attempts) {
    const model::Job& job = *find_job(state, id.job);
    const model::Attempt& attempt = job.attempts.at(id.attempt - 1);
    if (last_instant(job, attempt, state.policy->stop_grace) > reservation.begin &&
        scheduling::touches(reservation, attempt.allocation)) {
      attempts.push_back(id);
    }
  }
  return attempts;
}

// Returns all GPUs of each node, or a number of those that are in no other reservation. GPUs that
// no job may still hold at that time come first.
base::Result<std::vector<ReservationPart>> parts_of_nodes(const State& state,
                                                          const model::MakeReservation& command,
                                                          const Reservation& reservation) {
  std::vector<ReservationPart> parts;
  for (const std::string& name : sorted(command.nodes)) {
    const auto id = state.node_ids.find(name);
    if (id == state.node_ids.end()) {
      std::vector<std::string> known;
      for (const auto& [each, ignored] : state.node_ids) known.push_back(each);
      return base::fail(ErrorCode::kInvalidArgument,
                        fmt::format("nodes: there is no node '{}'; the nodes are {}", name,
                                    known.empty() ? "none" : some_of(known)),
                        "nodes");
    }
    const std::uint64_t all = all_gpus_of(*state.nodes.find(id->second.value));
    parts.push_back({id->second, all, !command.gpus_per_node});
  }
  std::ranges::sort(parts, {}, &ReservationPart::node);
  if (!command.gpus_per_node) return parts;
  for (ReservationPart& part : parts) {
    const std::string& name = state.nodes.find(part.node.value)->name;
    std::set<std::pair<bool, std::uint32_t>> choice;  // the idle ones first, then by index
    for (std::uint32_t i = 0; i < scheduling::kMaxGpusPerNode; ++i) {
      if ((part.gpus >> i & 1) == 0) continue;
      Reservation alone = reservation;
      alone.parts = {{part.node, std::uint64_t{1} << i, false}};
      if (overlapping(state.books->reservations, alone).empty()) {
        choice.emplace(!running_into(state, alone).empty(), i);
      }
    }
    if (choice.size() < *command.gpus_per_node) {
      return reservation_refused(
          "gpus_per_node",
          fmt::format("{} requested, but node {} has only {} that no other reservation holds then",
                      *command.gpus_per_node, name, choice.size()));
    }
    part.gpus = 0;
    auto next = choice.begin();
    for (std::uint32_t left = *command.gpus_per_node; left > 0; --left, ++next) {
      part.gpus |= std::uint64_t{1} << next->second;
    }
  }
  return parts;
}

// Places the reservation like a job, on a cluster without the attempts that will have ended by
// then. If need be, and if the command asks for it, the other attempts are left out too.
base::Result<std::vector<ReservationPart>> parts_by_count(const State& state,
                                                          scheduling::Cluster& cluster,
                                                          const model::MakeReservation& command,
                                                          const Reservation& reservation) {
  model::ResourceRequest request;
  request.gpus = command.gpus;
  request.cross_node = true;
  request.cpus = 0;
  request.memory = base::Bytes();
  request.numa = model::NumaPolicy::kAllowCross;
  request.engines = model::kAnyEngine;
  if (!command.gpu_type.empty()) request.gpu_types = {command.gpu_type};
  scheduling::Trial trial(cluster);
  std::vector<const model::Allocation*> running_on;
  for (const model::AttemptId id : state.held_attempts) {
    const model::Job& job = *find_job(state, id.job);
    const model::Attempt& attempt = job.attempts.at(id.attempt - 1);
    if (last_instant(job, attempt, state.policy->stop_grace) <= reservation.begin) {
      trial.release(attempt.allocation);
    } else {
      running_on.push_back(&attempt.allocation);
    }
  }
  const auto others = state.books->reservations.beside(reservation);
  const auto choose = [&] {
    const scheduling::Trial::Mark mark = trial.mark();
    state.books->reservations.withhold_from(trial, request, others);
    auto allocation = scheduling::place(trial, request);
    trial.rollback_to(mark);
    return allocation;
  };
  std::optional<model::Allocation> chosen = choose();
  if (!chosen && command.ignore_running) {
    for (const model::Allocation* allocation : running_on) trial.release(*allocation);
    chosen = choose();
  }
  if (!chosen) {
    return reservation_refused(
        "gpus",
        fmt::format("{} of one type{} requested in equal parts on as few nodes as possible, "
                    "but fewer are in service, outside other reservations and, "
                    "by the time limits of running jobs, free then{}",
                    command.gpus, command.gpu_type.empty() ? "" : " (" + command.gpu_type + ")",
                    command.ignore_running ? "" : " (ignore_running lets these finish)"));
  }
  std::vector<ReservationPart> parts;
  for (const model::NodeAllocation& part : chosen->nodes) {
    parts.push_back({part.node, scheduling::gpus_of(part), false});
  }
  std::ranges::sort(parts, {}, &ReservationPart::node);
  return parts;
}

// Attempts that are being ended are gone in a moment.
base::Status check_no_job_runs(const State& state, const Reservation& reservation,
                               const std::vector<model::AttemptId>& running) {
  std::vector<std::string> jobs;
  for (const model::AttemptId id : running) {
    const model::Job& job = *find_job(state, id.job);
    const base::Instant end = end_by_limit(job, job.attempts.at(id.attempt - 1));
    if (end == scheduling::RunningEnds::kAnyTime) continue;
    jobs.push_back(
        fmt::format("{} (until {})", name_of(job), base::utc(end + state.policy->stop_grace)));
  }
  if (jobs.empty()) return {};
  return reservation_refused("ignore_running",
                             fmt::format("these jobs may still run on its GPUs after {}: {}; "
                                         "with ignore_running they finish first",
                                         base::utc(reservation.begin), some_of(jobs)));
}

// Returns whether the job would run on GPUs of the reservation while that holds, if it began then.
bool runs_into(const State& state, const Reservation& reservation, const model::Job& job,
               const scheduling::Slot& slot) {
  if (job.spec->request.reservation == reservation.name) return false;
  const bool ends_before = slot.start + needed_by(state, *job.spec) <= reservation.begin;
  const bool begins_after =
      reservation.repeat == model::Repeat::kNever && slot.start >= reservation.end;
  return !ends_before && !begins_after && scheduling::touches(reservation, slot.allocation);
}

// Jobs are being stopped for one that waits, and lose their work, or a start has been promised.
base::Status check_nothing_promised(const State& state, const Reservation& reservation,
                                    const scheduling::PlannedStart* promised, base::Instant now) {
  std::vector<std::string> jobs;
  for (const auto& [id, hold] : state.books->holds.all()) {
    const base::Instant start = std::max(now, hold.decided_at + state.policy->stop_grace);
    const model::Job& job = *find_job(state, id);
    if (!runs_into(state, reservation, job, {start, hold.allocation})) continue;
    jobs.push_back(fmt::format("{} (others are being stopped for it)", name_of(job)));
  }
  const model::Job* job = promised == nullptr ? nullptr : find_job(state, promised->job);
  if (job != nullptr && state.books->holds.find(job->id) == nullptr &&
      runs_into(state, reservation, *job, promised->slot)) {
    jobs.push_back(
        fmt::format("{} (starts by {})", name_of(*job), base::utc(promised->slot.start)));
  }
  if (jobs.empty()) return {};
  return reservation_refused(
      "force", fmt::format("its GPUs are planned for these waiting jobs after {}: {}; "
                           "with force these jobs start later",
                           base::utc(reservation.begin), some_of(jobs)));
}

base::Status check_may(const model::Caller& caller, std::string_view verb) {
  if (model::may_touch_site(caller)) return {};
  return base::fail(
      ErrorCode::kPermissionDenied,
      fmt::format("user {} may not {} reservations: ask an operator", caller.user, verb));
}

base::Result<const Reservation*> find_reservation(const State& state, const std::string& name) {
  if (const Reservation* found = state.books->reservations.find(name)) return found;
  return base::fail(
      ErrorCode::kNotFound,
      fmt::format("there is no reservation '{}'; {}", name, names_text(state.books->reservations)),
      "name");
}

base::Status check_room(store::Headroom headroom) {
  if (headroom == store::Headroom::kAmple) return {};
  return base::fail(ErrorCode::kResourceExhausted,
                    "the disk of the data directory is full: no reservations are made or changed "
                    "until space is freed");
}

// Chooses its GPUs.
base::Status choose_parts(const State& state, scheduling::Cluster& cluster,
                          const model::MakeReservation& command, Reservation& reservation) {
  TRY_ASSIGN(reservation.parts, command.nodes.empty()
                                    ? parts_by_count(state, cluster, command, reservation)
                                    : parts_of_nodes(state, command, reservation));
  return {};
}

base::Status check_overlap(const State& state, const Reservation& reservation) {
  const std::string other = overlapping(state.books->reservations, reservation);
  return other.empty() ? base::Status() : reservation_refused("nodes", other);
}

}  // namespace

base::Result<model::ReservationMade> judge_reservation(
    const State& state, const ReservationBasis& basis, const model::Caller& caller,
    const model::MakeReservation& command, base::Instant now, store::Headroom headroom) {
  TRY(check_may(caller, "make"));
  TRY(check_room(headroom));
  TRY(check_name(state, command.name));
  TRY(check_admitted(state, command));
  TRY(check_which(command));
  if (state.books->reservations.all().size() >= model::kMaxReservations) {
    return base::fail(ErrorCode::kResourceExhausted,
                      fmt::format("there are {} reservations, which is the limit; cancel some",
                                  model::kMaxReservations));
  }
  Reservation reservation;
  reservation.name = command.name;
  reservation.begin = command.begin.is_set() ? command.begin : now;
  TRY_ASSIGN(reservation.end, end_of(command, reservation.begin));
  TRY(check_span(reservation, now));
  reservation.repeat = command.repeat;
  reservation.utc_offset = command.utc_offset;
  TRY(set_repeat(reservation, {command.until, command.count}));
  reservation.maintenance = command.maintenance;
  reservation.teams = sorted(command.teams);
  reservation.users = sorted(command.users);
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
  if (command.end && command.duration) return wrong("end", "give either end or duration_seconds");
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
  reservation.teams = sorted(std::move(admitted.teams));
  reservation.users = sorted(std::move(admitted.users));
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
      return wrong("skip", "cannot be combined with other changes");
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
    TRY(check_which(where));
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
  TRY(check_may(caller, "change"));
  TRY(check_room(headroom));
  TRY_ASSIGN(const Reservation* before, find_reservation(state, command.name));
  if (!command.skip && !changes_times(command) && !changes_place(command) &&
      !changes_admitted(command)) {
    return wrong("name", "give at least one change");
  }
  TRY_ASSIGN(Reservation after, changed(state, basis, command, *before, now));
  Events events;
  if (after == *before) return events;
  events.push_back(model::ReservationChanged{after, caller.user});
  add_followers(state, *before, after, caller.user, now, events);
  return events;
}

base::Result<model::ReservationEnded> judge_cancellation(const State& state,
                                                         const model::Caller& caller,
                                                         const model::CancelReservation& command) {
  TRY(check_may(caller, "cancel"));
  TRY_ASSIGN(const Reservation* reservation, find_reservation(state, command.name));
  return model::ReservationEnded{reservation->name, caller.user};
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
