#include "controller/judge/reservation_place.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/utc.h"
#include "controller/judge/reservation_rules.h"
#include "controller/judge/reservation_text.h"
#include "controller/judge/reserved_jobs.h"
#include "model/job_spec.h"
#include "scheduling/placement/place.h"
#include "scheduling/trial.h"

namespace gpu_platform::controller {

using base::ErrorCode;
using model::Reservation;
using model::ReservationPart;

namespace {

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

// Returns whether the job would run on GPUs of the reservation while that holds, if it began then.
bool runs_into(const State& state, const Reservation& reservation, const model::Job& job,
               const scheduling::Slot& slot) {
  if (job.spec->request.reservation == reservation.name) return false;
  const bool ends_before = slot.start + needed_by(state, *job.spec) <= reservation.begin;
  const bool begins_after =
      reservation.repeat == model::Repeat::kNever && slot.start >= reservation.end;
  return !ends_before && !begins_after && scheduling::touches(reservation, slot.allocation);
}

// Returns all GPUs of each node, or a number of those that are in no other reservation. GPUs that
// no job may still hold at that time come first.
base::Result<std::vector<ReservationPart>> parts_of_nodes(const State& state,
                                                          const model::MakeReservation& command,
                                                          const Reservation& reservation) {
  std::vector<ReservationPart> parts;
  for (const std::string& name : sorted_names(command.nodes)) {
    const auto id = state.node_ids.find(name);
    if (id == state.node_ids.end()) {
      std::vector<std::string> known;
      for (const auto& [each, ignored] : state.node_ids) known.push_back(each);
      return base::fail(ErrorCode::kNotFound,
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

}  // namespace

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

base::Status check_which_gpus(const model::MakeReservation& command) {
  if (command.nodes.empty() == (command.gpus == 0)) {
    return reservation_invalid("nodes", "give either nodes or gpus");
  }
  if (command.nodes.size() > model::kMaxReservationNodes) {
    return reservation_invalid("nodes",
                               fmt::format("{} nodes exceed the limit of {}", command.nodes.size(),
                                           model::kMaxReservationNodes));
  }
  if (command.nodes.empty() && command.gpus_per_node) {
    return reservation_invalid("gpus_per_node", "needs nodes; without nodes give gpus");
  }
  if (command.gpus_per_node && *command.gpus_per_node == 0) {
    return reservation_invalid("gpus_per_node",
                               "must be at least 1; leave it out to reserve whole nodes");
  }
  if (!command.nodes.empty() && !command.gpu_type.empty()) {
    return reservation_invalid("gpu_type", "needs gpus; it cannot be combined with nodes");
  }
  return {};
}

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

}  // namespace gpu_platform::controller
