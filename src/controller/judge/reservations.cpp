#include "controller/judge/reservations.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "model/utc.h"
#include "scheduling/placement/place.h"
#include "scheduling/trial.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Reservation;
using model::ReservationPart;

namespace {

std::unexpected<base::Error> refused(std::string_view field, const std::string& why) {
  return base::fail(ErrorCode::kFailedPrecondition, fmt::format("{}: {}", field, why),
                    std::string(field));
}

std::unexpected<base::Error> wrong(std::string_view field, const std::string& why) {
  return base::invalid(std::string(field), fmt::format("{}: {}", field, why));
}

// "1:30:00"
std::string shown(base::Duration duration) {
  const std::int64_t seconds = duration.value() / base::seconds(1).value();
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

// The first few, and how many more there are.
template <class Names>
std::string some_of(const Names& names) {
  constexpr std::size_t kMaxNamed = 8;
  std::vector<std::string> first;
  for (const auto& name : names) {
    if (first.size() == kMaxNamed) break;
    first.push_back(fmt::format("{}", name));
  }
  const std::string more =
      names.size() > first.size() ? fmt::format(" and {} more", names.size() - first.size()) : "";
  return fmt::format("{}{}", fmt::join(first, ", "), more);
}

std::string names_text(const scheduling::Reservations& reservations) {
  if (reservations.empty()) return "there is none";
  std::vector<std::string> names;
  for (const auto& [name, reservation] : reservations.all()) names.push_back(name);
  return "there are " + some_of(names);
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

// By which its time limit counts at the latest: a node's clock may be behind ours.
base::Instant start_of(const model::Attempt& attempt) {
  return std::max(attempt.requested_at, attempt.started_at);
}

// When the attempt may be there at the latest; also where it is being ended, since nobody knows
// better.
base::Instant last_instant(const model::Job& job, const model::Attempt& attempt,
                           base::Duration grace) {
  return start_of(attempt) + time_limit_of(job, attempt) + grace;
}

base::Result<base::Instant> end_of(const model::MakeReservation& command, base::Instant begin) {
  const bool has_duration = command.duration != base::Duration();
  if (command.end.is_set() == has_duration) {
    return wrong("end", "give either end or duration_seconds");
  }
  if (command.duration < base::Duration()) return wrong("duration_seconds", "it is negative");
  if (command.duration > model::kLongestReservation) {
    return refused("duration_seconds", "longer than the longest allowed, 90 days");
  }
  return has_duration ? begin + command.duration : command.end;
}

base::Status check_span(const Reservation& reservation, base::Instant now) {
  if (reservation.begin < now) {
    return refused("begin", fmt::format("{} has passed", model::utc(reservation.begin)));
  }
  if (reservation.end <= reservation.begin) {
    return refused("end", fmt::format("{} is not after begin, {}", model::utc(reservation.end),
                                      model::utc(reservation.begin)));
  }
  if (reservation.end - reservation.begin > model::kLongestReservation) {
    return refused("end", "it lasts longer than the longest allowed, 90 days");
  }
  if (reservation.begin - now > model::kFarthestReservation) {
    return refused("begin", "it is farther away than allowed, 366 days");
  }
  return {};
}

base::Status check_which(const model::MakeReservation& command) {
  if (command.nodes.empty() == (command.gpus == 0)) {
    return wrong("nodes", "name nodes, or say how many gpus; one of both");
  }
  if (command.nodes.size() > model::kMaxReservationNodes) {
    return wrong("nodes", fmt::format("{} named, the most is {}", command.nodes.size(),
                                      model::kMaxReservationNodes));
  }
  if (command.nodes.empty() && command.gpus_per_node) {
    return wrong("gpus_per_node", "it is for nodes that are named; without them say gpus");
  }
  if (command.gpus_per_node && *command.gpus_per_node == 0) {
    return wrong("gpus_per_node", "at least 1; left out it means all of each node");
  }
  if (!command.nodes.empty() && !command.gpu_type.empty()) {
    return wrong("gpu_type", "it is for gpus; nodes that are named have the types that they have");
  }
  return {};
}

// The part that each overlaps; empty: none.
std::string overlapping(const scheduling::Reservations& reservations,
                        const Reservation& reservation) {
  for (const auto& [name, other] : reservations.all()) {
    if (!overlap(other, reservation)) continue;
    return fmt::format("some of its GPUs are in reservation {}, from {} to {}", name,
                       model::utc(other.begin), model::utc(other.end));
  }
  return {};
}

// Of the reservation's own team or of one above.
bool is_below_one_of(const model::Organisation& organisation, std::string team,
                     const std::vector<std::string>& teams) {
  while (!team.empty()) {
    if (std::ranges::binary_search(teams, team)) return true;
    const model::Team* found = find_team(organisation, team);
    team = found == nullptr ? std::string() : found->parent;
  }
  return false;
}

bool admits(const Reservation& reservation, const model::JobSpec& spec,
            const model::Organisation& organisation) {
  return !reservation.maintenance && (std::ranges::binary_search(reservation.users, spec.user) ||
                                      is_below_one_of(organisation, spec.team, reservation.teams));
}

std::string admitted_text(const Reservation& reservation) {
  if (reservation.maintenance) return "it is for maintenance and admits no jobs";
  std::string text = "it is for";
  if (!reservation.teams.empty()) text += fmt::format(" team {}", some_of(reservation.teams));
  if (!reservation.users.empty()) {
    text += fmt::format("{} user {}", reservation.teams.empty() ? "" : " and",
                        some_of(reservation.users));
  }
  return text;
}

// The reservation as if nothing ran there and all of it were in service.
bool could_hold(const Reservation& reservation, const base::PersistentMap<model::Node>& nodes,
                const model::ResourceRequest& request) {
  const auto inside = scheduling::request_inside(reservation, request);
  if (!inside) return false;
  scheduling::Cluster cluster;
  for (const ReservationPart& part : reservation.parts) {
    const model::Node* node = nodes.find(part.node.value);
    if (node == nullptr) continue;
    model::Node empty = *node;
    empty.state = model::NodeState::kUp;
    empty.cpus_used = 0;
    empty.memory_used = {};
    for (std::size_t i = 0; i < empty.gpus.size(); ++i) {
      model::Gpu& gpu = empty.gpus[i];
      const bool is_in = i < scheduling::kMaxGpusPerNode && (part.gpus >> i & 1) != 0;
      gpu.state =
          part.whole_node || is_in ? model::GpuState::kAvailable : model::GpuState::kOffline;
      gpu.holders.clear();
      gpu.avoids_unmanaged_processes = false;
    }
    cluster.update(empty);
  }
  scheduling::Trial trial(cluster);
  return scheduling::place(trial, *inside).has_value();
}

base::Status check_name(const State& state, const std::string& name) {
  if (!model::is_reservation_name(name)) {
    return wrong("name", "1 to 64 letters, digits, '-', '_' and '.', first a letter or digit");
  }
  if (state.books->reservations.find(name) != nullptr) {
    return base::fail(ErrorCode::kAlreadyExists,
                      fmt::format("name: there is a reservation {}; cancel it first", name),
                      "name");
  }
  // Else they would be in this one, where they were never admitted.
  std::optional<model::JobId> former;
  state.jobs.for_each([&](std::uint64_t, const model::Job& job) {
    if (job.spec->request.reservation == name && !former) former = job.id;
  });
  if (!former) return {};
  return refused("name", fmt::format("job {} of a former reservation {} is still there: choose "
                                     "another name, or wait for its end",
                                     former->value, name));
}

base::Status check_admitted(const State& state, const model::MakeReservation& command) {
  const bool names_somebody = !command.teams.empty() || !command.users.empty();
  if (names_somebody == command.maintenance) {
    return wrong("teams", "name the teams or users that may use it, or set maintenance, not both");
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
    return base::fail(ErrorCode::kInvalidArgument,
                      fmt::format("teams: there is no team {}; there are {}", team, some_of(known)),
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

// All GPUs of each, or of each so many that are in no other reservation, those first that nobody
// may still hold then.
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
                        fmt::format("nodes: there is no node {}; there are {}", name,
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
      return refused("gpus_per_node",
                     fmt::format("{} asked, node {} has {} that are in no other reservation then",
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

// By the placement of jobs, on a cluster from which those are gone that will have ended by then; if
// need be, and asked for so, the others too.
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
  const auto choose = [&] {
    const scheduling::Trial::Mark mark = trial.mark();
    state.books->reservations.withhold_from(trial, request, {reservation.begin, reservation.end});
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
    return refused(
        "gpus",
        fmt::format("{} of one type{} asked in equal parts on as few nodes as can be; "
                    "so many are not in service, free of other reservations and, "
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

// Those that are being ended are gone in a moment.
base::Status check_nobody_runs(const State& state, const Reservation& reservation) {
  std::vector<std::string> jobs;
  for (const model::AttemptId id : reservation.let_finish) {
    const model::Job& job = *find_job(state, id.job);
    const base::Instant end = end_by_limit(job, job.attempts.at(id.attempt - 1));
    if (end == scheduling::RunningEnds::kAnyTime) continue;
    jobs.push_back(
        fmt::format("{} (until {})", name_of(job), model::utc(end + state.policy->stop_grace)));
  }
  if (jobs.empty()) return {};
  return refused("ignore_running",
                 fmt::format("by their time limits these jobs may run on its GPUs after {}: {}; "
                             "with ignore_running they are let finish",
                             model::utc(reservation.begin), some_of(jobs)));
}

}  // namespace

base::Result<model::ReservationMade> judge_reservation(
    const State& state, scheduling::Cluster& cluster, const model::Caller& caller,
    const model::MakeReservation& command, base::Instant now, store::Headroom headroom) {
  if (!caller.is_administrator) {
    return base::fail(
        ErrorCode::kPermissionDenied,
        fmt::format("user {} may not make reservations: ask an administrator", caller.user));
  }
  if (headroom != store::Headroom::kAmple) {
    return base::fail(ErrorCode::kResourceExhausted,
                      "the disk of the data directory is full: no reservations are made until "
                      "space is freed");
  }
  TRY(check_name(state, command.name));
  TRY(check_admitted(state, command));
  TRY(check_which(command));
  if (state.books->reservations.all().size() >= model::kMaxReservations) {
    return base::fail(
        ErrorCode::kResourceExhausted,
        fmt::format("there are {} reservations, which is the most", model::kMaxReservations));
  }
  Reservation reservation;
  reservation.name = command.name;
  reservation.begin = command.begin.is_set() ? command.begin : now;
  TRY_ASSIGN(reservation.end, end_of(command, reservation.begin));
  TRY(check_span(reservation, now));
  reservation.maintenance = command.maintenance;
  reservation.teams = sorted(command.teams);
  reservation.users = sorted(command.users);
  reservation.made_by = caller.user;
  reservation.made_at = now;
  TRY_ASSIGN(reservation.parts, command.nodes.empty()
                                    ? parts_by_count(state, cluster, command, reservation)
                                    : parts_of_nodes(state, command, reservation));
  if (const std::string other = overlapping(state.books->reservations, reservation);
      !other.empty()) {
    return refused("nodes", other);
  }
  reservation.let_finish = running_into(state, reservation);
  if (!command.ignore_running) TRY(check_nobody_runs(state, reservation));
  return model::ReservationMade{std::move(reservation)};
}

base::Result<model::ReservationEnded> judge_cancellation(const State& state,
                                                         const model::Caller& caller,
                                                         const model::CancelReservation& command) {
  if (!caller.is_administrator) {
    return base::fail(
        ErrorCode::kPermissionDenied,
        fmt::format("user {} may not cancel reservations: ask an administrator", caller.user));
  }
  if (state.books->reservations.find(command.name) == nullptr) {
    return base::fail(ErrorCode::kNotFound,
                      fmt::format("there is no reservation {}; {}", command.name,
                                  names_text(state.books->reservations)),
                      "name");
  }
  return model::ReservationEnded{command.name, caller.user};
}

base::Status check_reservation_times(const State& state, const model::JobSpec& spec,
                                     base::Instant earliest) {
  const Reservation* reservation = spec.request.reservation.empty()
                                       ? nullptr
                                       : state.books->reservations.find(spec.request.reservation);
  if (reservation == nullptr) return {};
  const base::Duration limit = model::longest_limit(spec.request, spec.time_limit);
  const base::Duration grace = state.policy->stop_grace;
  const base::Instant start = std::max({earliest, spec.begin, reservation->begin});
  if (start + limit + grace <= reservation->end) return {};
  const base::Duration left = reservation->end - start;
  return refused(
      "time_limit_seconds",
      fmt::format("a job must have ended by the end of its reservation: {} has {} left from {}, of "
                  "which {} are kept for stopping it (policies.stop_grace), and the time limit is "
                  "{}",
                  reservation->name, shown(std::max(left, base::Duration())), model::utc(start),
                  shown(grace), shown(limit)));
}

base::Status enter_reservation(const State& state, model::JobSpec& spec, base::Instant now) {
  const std::string& name = spec.request.reservation;
  if (name.empty()) return {};
  const Reservation* reservation = state.books->reservations.find(name);
  if (reservation == nullptr) {
    return base::fail(
        ErrorCode::kNotFound,
        fmt::format("reservation: there is no {}; {}", name, names_text(state.books->reservations)),
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
    return refused(
        "reservation",
        fmt::format("the {} GPU{} of {} on {} node{} could not hold this job, even with "
                    "nothing else running there",
                    reservation->gpu_count(), reservation->gpu_count() == 1 ? "" : "s", name,
                    reservation->parts.size(), reservation->parts.size() == 1 ? "" : "s"));
  }
  if (reservation->begin > now) spec.begin = std::max(spec.begin, reservation->begin);
  const base::Instant deadline = reservation->end + (base::Duration() - state.policy->stop_grace);
  spec.deadline = spec.deadline.is_set() ? std::min(spec.deadline, deadline) : deadline;
  return {};
}

base::Status check_no_reservation_passed(const State& state, const model::Job& job,
                                         base::Duration time_limit) {
  if (!model::is_active(job.state) || time_limit <= job.spec->time_limit) return {};
  const model::Attempt& attempt = *job.current_attempt();
  const base::Instant start = start_of(attempt);
  const base::Duration limit = model::limit_at_speed(time_limit, attempt.allocation.speed);
  const scheduling::Span span{start, start + limit + state.policy->stop_grace};
  const Reservation* reservation =
      state.books->reservations.find_in_the_way(job.spec->request, attempt.allocation, span);
  if (reservation == nullptr) return {};
  return refused("time_limit_seconds",
                 fmt::format("reservation {} needs GPUs of job {} from {} on", reservation->name,
                             job.id.value, model::utc(reservation->begin)));
}

Events ended_reservations(const State& state, base::Instant now) {
  Events events;
  for (const auto& [name, reservation] : state.books->reservations.all()) {
    if (reservation.end <= now) events.push_back(model::ReservationEnded{name, {}});
  }
  return events;
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
