#include <algorithm>
#include <iterator>

#include "model/job_spec.h"
#include "simulation/faults/client.h"

// These actions are people's requests that tie jobs to times and to each other.

namespace gpu_platform::simulation {

using model::JobId;

void Client::draw_times(base::Instant& begin, base::Instant& deadline) {
  const base::Instant now = ledger_.state().at;
  if (!now.is_set()) return;
  const auto within = [&](std::uint64_t seconds) {
    return now + base::milliseconds(static_cast<std::int64_t>(random_.below(seconds * 1000)));
  };
  if (random_.chance(1, 6)) {
    findings_.count(FaultKind::kPutOff);
    begin = within(300);
  }
  if (random_.chance(1, 6)) {
    findings_.count(FaultKind::kDeadline);
    deadline = within(1800);
  }
}

void Client::draw_reservation(model::JobSpec& spec) {
  const scheduling::Reservations& reservations = ledger_.state().books->reservations;
  if (reservations.empty() || !random_.chance(1, 3)) return;
  const auto chosen =
      std::next(reservations.all().begin(),
                static_cast<std::ptrdiff_t>(random_.below(reservations.all().size())));
  const auto& [name, reservation] = *chosen;
  spec.request.reservation = name;
  if (!reservation.users.empty() && random_.chance(3, 4)) spec.user = reservation.users.front();
  spec.uid = uid_of(spec.user);
  spec.gid = spec.uid;
  if (random_.chance(1, 2)) spec.request.gpus = static_cast<std::uint32_t>(random_.below(3));
  if (random_.chance(1, 2))
    spec.time_limit = base::seconds(static_cast<std::int64_t>(1 + random_.below(120)));
}

std::vector<model::Dependency> Client::draw_dependencies() {
  constexpr const auto& kKinds = model::kAllDependencyKinds;
  std::vector<model::Dependency> asked;
  for (std::uint64_t left = 1 + random_.below(3); left > 0 && !submissions_.empty(); --left) {
    const Submission& submission = submissions_[random_.below(submissions_.size())];
    if (!submission.job) continue;
    const bool whole_array = submission.spec.array && random_.chance(1, 2);
    const model::DependencyKind kind = kKinds[random_.below(std::size(kKinds))];
    const bool has_target = kind != model::DependencyKind::kSingleton;
    asked.push_back({kind, has_target ? model::DependencyTarget{*submission.job, whole_array}
                                      : model::DependencyTarget{}});
  }
  if (!asked.empty()) findings_.count(FaultKind::kDependent);
  return asked;
}

// Among them dependencies that would be circular.
void Client::change_start_conditions(model::UpdateJob& update) {
  base::Instant begin;
  base::Instant deadline;
  draw_times(begin, deadline);
  if (begin.is_set()) update.to.set(&model::JobSpec::begin, begin);
  if (deadline.is_set() || random_.chance(1, 8)) {
    update.to.set(&model::JobSpec::deadline, deadline);
  }
  if (random_.chance(1, 2)) return;
  const std::vector<model::Dependency> asked = draw_dependencies();
  update.to.set(&model::JobSpec::dependencies, asked);
  update.ended = ended_of(asked);
}

std::uint64_t Client::members_of(JobId job) const {
  const auto found = std::ranges::find_if(
      submissions_, [&](const Submission& submission) { return submission.job == job; });
  const bool is_array = found != submissions_.end() && found->spec.array;
  return is_array ? member_count(*found->spec.array) : 1;
}

std::vector<model::EndedTarget> Client::ended_of(
    const std::vector<model::Dependency>& asked) const {
  std::vector<model::EndedTarget> ended;
  for (const model::Dependency& dependency : asked) {
    if (dependency.kind == model::DependencyKind::kSingleton) continue;
    const JobId first = dependency.on.job;
    const std::uint64_t count = dependency.on.whole_array ? members_of(first) : 1;
    model::TargetOutcome outcome;
    for (std::uint64_t position = 0; position < count; ++position) {
      const JobId id(first.value + position);
      const Ledger::Job* job = ledger_.find(id);
      if (job == nullptr || !job->has_ended) {
        ++outcome.open;
      } else if (job->how != model::JobTrigger::kComplete && !outcome.failed.valid()) {
        outcome.failed = id;
        outcome.failed_as = state_after(job->how);
      }
    }
    if (outcome.open == 0) ended.push_back({dependency.on, outcome});
  }
  return ended;
}

void Client::note_stopped(const Aim& aim, const model::CommandReply& reply) {
  if (!aim.whole_array && reply.changed) stopped_.push_back(aim.job);
  for (const model::JobOutcome& outcome : reply.jobs) {
    if (outcome.changed) stopped_.push_back(outcome.job);
  }
}

}  // namespace gpu_platform::simulation
