#include "simulation/faults/ledger.h"

#include <algorithm>
#include <span>
#include <variant>

#include <fmt/format.h>

#include "base/hash.h"
#include "controller/invariants.h"
#include "model/codec.h"
#include "model/job_spec.h"
#include "model/node_lookup.h"

namespace gpu_platform::simulation {

using model::AttemptId;
using model::Lost;

namespace {

std::string named(AttemptId id) {
  return fmt::format("attempt {} of job {}", id.attempt, id.job.value);
}

bool is_by_person(model::EndReason stop) {
  return stop == model::EndReason::kCancelledBy || stop == model::EndReason::kKilledBy;
}

bool is_to_be_queued_again(model::EndReason stop) {
  return stop == model::EndReason::kRequeuedBy || stop == model::EndReason::kPreempted ||
         stop == model::EndReason::kGpuOffline;
}

std::string shown_exit(const model::Exit& exit) {
  if (exit.code) return fmt::format("exit code {}", *exit.code);
  if (exit.signal) return fmt::format("signal {}", *exit.signal);
  return exit.lost == Lost::kNo ? "no exit" : std::string(to_string(exit.lost));
}

// Returns whether the rule allows the victim to be stopped for the beneficiary.
bool is_fair(model::PreemptionRule rule, const model::JobSpec& victim,
             const model::JobSpec& beneficiary, const model::Policy& policy) {
  const model::PriorityClass own = beneficiary.priority.priority_class;
  const model::PriorityClass other = victim.priority.priority_class;
  if (rule == model::PreemptionRule::kClass) return model::is_below(other, own);
  if (!model::may_borrow(victim, policy)) return false;
  return rule == model::PreemptionRule::kReclaim || !model::is_below(own, other);
}

// Returns the job that a person changed, by the event that says so; invalid if no person did.
model::JobId changed_by_person(const model::Event& event, bool was_active) {
  using model::EndReason;
  const auto is_asked_for = [](EndReason reason) {
    return reason == EndReason::kCancelledBy || reason == EndReason::kKilledBy ||
           reason == EndReason::kRequeuedBy || reason == EndReason::kGpuOffline;
  };
  if (const auto* stop = std::get_if<model::StopRequested>(&event)) {
    return is_asked_for(stop->reason) && !stop->by.empty() ? stop->attempt.job : model::JobId();
  }
  // For a running job it is the outcome of a stop.
  if (const auto* ended = std::get_if<model::JobEnded>(&event); ended != nullptr && !was_active) {
    return is_asked_for(ended->reason) && !ended->by.empty() ? ended->job : model::JobId();
  }
  if (const auto* hold = std::get_if<model::JobHoldChanged>(&event)) return hold->job;
  if (const auto* change = std::get_if<model::JobChanged>(&event)) return change->job;
  if (const auto* raise = std::get_if<model::JobsRaised>(&event)) return raise->job;
  if (const auto* signal = std::get_if<model::SignalRequested>(&event)) return signal->attempt.job;
  return {};
}

}  // namespace

model::JobState state_after(model::JobTrigger how) {
  if (how == model::JobTrigger::kComplete) return model::JobState::kCompleted;
  if (how == model::JobTrigger::kCancel) return model::JobState::kCancelled;
  return how == model::JobTrigger::kTimeOut ? model::JobState::kTimedOut : model::JobState::kFailed;
}

void Ledger::absorb(const store::Journal& journal) {
  const base::Status read =
      journal.replay(state_.seq, [&](const model::EventRecord& record) -> base::Status {
        take(record);
        return {};
      });
  if (!read) findings_.violated("readable", read.error().message);
  if (!unaudited_.empty()) {
    findings_.violated("audited", fmt::format("job {} was changed, and the audit trail does not "
                                              "name the user",
                                              unaudited_.begin()->value));
  }
  if (to_settle_.valid()) {
    findings_.violated("settled", fmt::format("the journal ends before it says what becomes of "
                                              "job {} after the end of its attempt",
                                              to_settle_.value));
  }
}

void Ledger::heard(const execution::Observation& observation) {
  if (const auto* cleaned = std::get_if<execution::Cleaned>(&observation)) {
    heard_cleaned_.insert(cleaned->attempt);
  } else if (const auto* ended = std::get_if<execution::Ended>(&observation)) {
    if (ended->exit.lost != Lost::kNo) heard_lost_[ended->attempt] = ended->exit.lost;
    if (ended->reason == model::EndReason::kPreempted) heard_preempted_.insert(ended->attempt);
    if (!ended->unfit_gpus.empty()) heard_unfit_.insert(ended->attempt);
    if (!ended->neighbour_fault.empty()) heard_innocent_.insert(ended->attempt);
  } else if (const auto* node = std::get_if<execution::NodeObserved>(&observation)) {
    heard_boots_[node->info.name].insert(node->info.boot_id);
  } else if (const auto* gone = std::get_if<execution::NodeUnreachable>(&observation)) {
    heard_unreachable_.insert(gone->node_name);
  }
}

const Ledger::Job* Ledger::find(model::JobId job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? nullptr : &found->second;
}

model::JobId Ledger::job_of(const std::string& name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? model::JobId() : found->second;
}

void Ledger::take(const model::EventRecord& record) {
  if (findings_.any()) return;  // a state that is wrong already stops the program sooner or later
  if (record.at < last_at_) {
    findings_.violated("times",
                       fmt::format("event {} is earlier than the one before it", record.seq.value));
    return;
  }
  last_at_ = record.at;
  bytes_.clear();
  model::append_record(record, bytes_);
  hash_ = base::hash64(bytes_, hash_);
  std::visit([&](const auto& event) { on(event); }, record.event);
  follow_audit(record);
  const scheduling::PreemptionHolds holds = state_.books->holds;
  const std::size_t lines_before = lines_.size();
  controller::apply(state_, record, {departed_, lines_});
  check_accounts(record, lines_before);
  check_free();
  check_holds_ended(holds, record.event);
  check_state(record);
}

void Ledger::check_accounts(const model::EventRecord& record, std::size_t lines_before) {
  const std::span<const model::LedgerLine> fresh = std::span(lines_).subspan(lines_before);
  const auto wrong = gpu_books_.take(fresh, state_);
  if (!wrong) return;
  findings_.violated("accounts", fmt::format("{} (after event {}, {})", *wrong, record.seq.value,
                                             model::name_of(record.event)));
}

void Ledger::follow_audit(const model::EventRecord& record) {
  if (auto entry = model::audit_entry(record)) {
    for (const model::JobId job : entry->call.jobs) unaudited_.erase(job);
    if (entry->call.job_count > entry->call.jobs.size()) unaudited_.clear();
    audit_.push_back(*std::move(entry));
    return;
  }
  const model::Job* before = state_.jobs.find(model::job_of(record.event).value);
  const bool was_active = before != nullptr && model::is_active(before->state);
  const model::JobId job = changed_by_person(record.event, was_active);
  if (job.valid()) unaudited_.insert(job);
}

// Between the end of an attempt and what becomes of its job, the very next event, the job is active
// without a process.
void Ledger::check_state(const model::EventRecord& record) {
  if (to_settle_.valid()) {
    const bool settles = std::holds_alternative<model::JobEnded>(record.event) ||
                         std::holds_alternative<model::JobRequeued>(record.event);
    if (!settles || model::job_of(record.event) != to_settle_) {
      findings_.violated("settled", fmt::format("event {} does not say what becomes of job {}, "
                                                "after the end of its attempt",
                                                record.seq.value, to_settle_.value));
    }
  }
  to_settle_ = {};
  if (const auto* ended = std::get_if<model::AttemptEnded>(&record.event)) {
    to_settle_ = ended->attempt.job;
  }
  for (const std::string& violation : controller::check_invariants(state_)) {
    if (to_settle_.valid() && violation.starts_with("one-process: ")) continue;
    findings_.violated(fmt::format("{} (after event {}, {})", violation, record.seq.value,
                                   model::name_of(record.event)));
  }
}

void Ledger::check_holds_ended(const scheduling::PreemptionHolds& before,
                               const model::Event& event) {
  const model::JobId about = model::job_of(event);
  const bool is_of_hardware = std::holds_alternative<model::NodeSeen>(event) ||
                              std::holds_alternative<model::TaintChanged>(event) ||
                              std::holds_alternative<model::UnmanagedProcessesChanged>(event) ||
                              std::holds_alternative<model::NodeOthersChanged>(event) ||
                              std::holds_alternative<model::AttemptReleased>(event);
  const bool is_change = std::holds_alternative<model::JobChanged>(event) ||
                         std::holds_alternative<model::ReservationMade>(event) ||
                         std::holds_alternative<model::ReservationChanged>(event) ||
                         std::holds_alternative<model::TeamSet>(event) ||
                         std::holds_alternative<model::TeamRemoved>(event) ||
                         std::holds_alternative<model::PolicyApplied>(event);
  for (const auto& [job, hold] : before.all()) {
    if (state_.books->holds.find(job) != nullptr || job == about || is_of_hardware || is_change)
      continue;
    findings_.violated("for-nothing", fmt::format("the preemption hold of job {} ended with {}",
                                                  job.value, model::name_of(event)));
  }
}

void Ledger::check_held(const model::StartRequested& event) {
  for (const auto& [job, hold] : state_.books->holds.all()) {
    if (job == event.attempt.job) continue;
    for (const model::NodeAllocation& kept : hold.allocation.nodes) {
      for (const model::NodeAllocation& part : event.allocation.nodes) {
        const bool overlaps =
            part.node == kept.node && std::ranges::any_of(part.grants, [&](const auto& gpu) {
              return std::ranges::any_of(
                  kept.grants, [&](const auto& other) { return other.gpu_index == gpu.gpu_index; });
            });
        if (!overlaps) continue;
        findings_.violated("held", fmt::format("{} is given what is held for job {}",
                                               named(event.attempt), job.value));
      }
    }
  }
}

// No party keeps the GPUs from work.
void Ledger::check_fit(const model::StartRequested& event) {
  for (const model::NodeAllocation& part : event.allocation.nodes) {
    const model::Node* const node = state_.nodes.find(part.node.value);
    if (node == nullptr) continue;  // an invariant's
    for (const model::GpuGrant& grant : part.grants) {
      if (grant.gpu_index >= node->gpus.size()) continue;  // the same
      const model::Gpu& gpu = node->gpus[grant.gpu_index];
      const model::Taint* const worst = model::worst_of(gpu.taints);
      if (worst == nullptr || worst->effect == model::TaintEffect::kDegraded) continue;
      findings_.violated(
          "fit", fmt::format("{} is given GPU {} of node {}, which is kept from "
                             "work: {}",
                             named(event.attempt), grant.gpu_index, node->name, worst->text));
    }
  }
}

void Ledger::on(const model::NodeSeen& event) {
  boot_ids_[event.node] = event.info.boot_id;
  node_names_[event.node] = event.info.name;
}

void Ledger::on(const model::ReservationMade&) {
  findings_.count(FaultKind::kReserved);
}

void Ledger::on(const model::ReservationEnded& event) {
  findings_.count(event.by.empty() ? FaultKind::kReservationPassed : FaultKind::kUnreserved);
}

void Ledger::on(const model::ReservationChanged& event) {
  findings_.count(event.by.empty() ? FaultKind::kReservationRepeated
                                   : FaultKind::kReservationChanged);
}

void Ledger::on(const model::TokenCreated&) {
  findings_.count(FaultKind::kTokenMade);
}

void Ledger::on(const model::TeamSet&) {
  findings_.count(FaultKind::kTeamSet);
}

void Ledger::on(const model::TeamRemoved&) {
  findings_.count(FaultKind::kTeamRemoved);
}

void Ledger::on(const model::TokenRevoked& event) {
  findings_.count(event.by.empty() ? FaultKind::kTokenExpired : FaultKind::kTokenRevoked);
}

void Ledger::on(const model::JobChanged& event) {
  const base::Duration* const limit = event.to.get(&model::JobSpec::time_limit);
  if (limit == nullptr) return;
  limits_.emplace(event.job, *limit);
  jobs_[event.job].limit = *limit;
}

void Ledger::on(const model::JobSubmitted& event) {
  const std::uint64_t count = event.spec->array ? member_count(*event.spec->array) : 1;
  for (std::uint64_t position = 0; position < count; ++position) {
    const model::JobId member(event.job.value + position);
    limits_.emplace(member, event.spec->time_limit);
    jobs_[member] = {.name = event.spec->name,
                     .gpus = model::total_gpus(event.spec->request),
                     .complete_on_exit_zero = event.spec->complete_on_exit_zero,
                     .is_held = event.hold != model::Hold::kNone,
                     .limit = event.spec->time_limit};
  }
  if (!names_.emplace(event.spec->name, event.job).second) {
    findings_.violated("submitted-once",
                       fmt::format("submission {} became two jobs, {} and {}", event.spec->name,
                                   names_[event.spec->name].value, event.job.value));
  }
}

void Ledger::on(const model::StartRequested& event) {
  check_held(event);
  check_fit(event);
  const model::Job* known = state_.jobs.find(event.attempt.job.value);
  const bool is_in_reservation = known != nullptr && !known->spec->request.reservation.empty();
  if (is_in_reservation) findings_.count(FaultKind::kInReservation);
  if (event.yields_at.is_set()) findings_.count(FaultKind::kTrusted);
  Job& job = jobs_[event.attempt.job];
  if (event.attempt.attempt != ++job.attempts || job.has_ended) {
    findings_.violated(
        "numbered", fmt::format("{} follows {} attempts of a job that has {}", named(event.attempt),
                                job.attempts - 1, job.has_ended ? "ended" : "not ended"));
  }
  if (event.allocation.gpu_count() != job.gpus) {
    findings_.violated("gang", fmt::format("{} is given {} of {} GPUs", named(event.attempt),
                                           event.allocation.gpu_count(), job.gpus));
  }
  if (job.is_held) findings_.violated("held", named(event.attempt) + " is started of a held job");
  if (const auto stopped = stopped_for_.find(event.attempt.job); stopped != stopped_for_.end()) {
    const model::PriorityClass own = known->spec->priority.priority_class;
    stops_above_[event.attempt] = model::higher(own, stopped->second);
    stopped_for_.erase(stopped);
  }
  job.speeds.insert(event.allocation.speed);
  job.speed = event.allocation.speed;
  job.stop = job.end = model::EndReason::kNone;
  job.did_well = false;
  Start& start = starts_[event.attempt];
  start.boot_id = event.boot_id;
  for (const model::NodeAllocation& part : event.allocation.nodes) {
    start.node_names.push_back(node_names_[part.node]);
    for (const model::GpuGrant& grant : part.grants) {
      const GpuPlace place{part.node, grant.gpu_index};
      hand_on(event, place, grant);
      start.gpus.push_back(place);
    }
  }
}

void Ledger::hand_on(const model::StartRequested& event, const GpuPlace& place,
                     const model::GpuGrant& grant) {
  auto& holders = holders_[place];
  base::GpuShare share = grant.share;
  base::Bytes memory = grant.memory;
  for (const auto& [other, held] : holders) {
    share += held.share;
    memory += held.memory;
    const bool is_one_way = held.mode == grant.mode;
    const bool is_one_user =
        grant.mode != model::ShareMode::kMps || tenants_[other].uid == event.allocation.tenant.uid;
    if (is_one_way && is_one_user) continue;
    findings_.violated("shared",
                       fmt::format("GPU {}:{} is given to {} beside {}", node_names_[place.first],
                                   place.second, named(event.attempt), named(other)));
  }
  const model::Node* const node = state_.nodes.find(place.first.value);
  const bool is_known = node != nullptr && place.second < node->gpus.size();
  const bool is_too_much = is_known && memory > node->gpus[place.second].info.memory;
  if (share > base::kWholeGpu || (is_too_much && !holders.empty())) {
    findings_.violated(
        "handed-on",
        fmt::format("GPU {}:{} is given to {} and held by {}", node_names_[place.first],
                    place.second, named(event.attempt), named(holders.begin()->first)));
  }
  if (!holders.empty()) findings_.count(FaultKind::kSharedGpu);
  holders.emplace(event.attempt, grant);
  tenants_[event.attempt] = event.allocation.tenant;
}

void Ledger::on(const model::AttemptStarted& event) {
  const Truth::Attempt* truth = truth_.find(event.attempt);
  const bool was_taken_away = heard_preempted_.contains(event.attempt);
  if (!was_taken_away && (truth == nullptr || !truth->has_begun())) {
    findings_.violated(
        "true-start", fmt::format("{} is said to run and was never started", named(event.attempt)));
  }
}

void Ledger::on(const model::SignalRequested& event) {
  if (starts_.contains(event.attempt) && !ends_.contains(event.attempt)) return;
  findings_.violated("signalled", named(event.attempt) + " is sent a signal and does not run");
}

void Ledger::on(const model::StopRequested& event) {
  stops_.insert(event.attempt);
  jobs_[event.attempt.job].stop = event.reason;
  if (event.reason != model::EndReason::kPreempted) return;
  findings_.count(FaultKind::kPreempted);
  const model::Job* victim = state_.jobs.find(event.attempt.job.value);
  const bool is_reclaimed = victim != nullptr && victim->attempts.back().is_borrowed;
  if (is_reclaimed) findings_.count(FaultKind::kReclaimed);
  check_in_turn(event);
  const bool has_reason = std::ranges::any_of(state_.books->holds.all(), [&](const auto& entry) {
    const model::Job* beneficiary = state_.jobs.find(entry.first.value);
    return beneficiary != nullptr && victim != nullptr &&
           std::ranges::binary_search(entry.second.victims, event.attempt) &&
           is_fair(entry.second.rule, *victim->spec, *beneficiary->spec, *state_.policy);
  });
  if (has_reason) return;
  if (victim != nullptr && is_to_yield(victim->attempts.back(), event.by)) {
    findings_.count(FaultKind::kYielded);
  } else {
    findings_.violated("for-nothing", named(event.attempt) + " is stopped for no job");
  }
}

void Ledger::check_in_turn(const model::StopRequested& event) {
  const model::Job* victim = state_.jobs.find(event.attempt.job.value);
  const model::Job* beneficiary = state_.jobs.find(event.stopped_for.value);
  if (victim == nullptr || beneficiary == nullptr) {
    findings_.violated("in-turn", named(event.attempt) + " is stopped for no job that is there");
    return;
  }
  model::PriorityClass above = victim->spec->priority.priority_class;
  if (const auto found = stops_above_.find(event.attempt); found != stops_above_.end()) {
    above = model::higher(above, found->second);
    findings_.count(FaultKind::kStoppedInTurn);
    if (!model::is_below(found->second, beneficiary->spec->priority.priority_class)) {
      findings_.violated("in-turn",
                         fmt::format("{}, which others were stopped for, is stopped for job {}",
                                     named(event.attempt), event.stopped_for.value));
    }
  }
  const auto [entry, is_first] = stopped_for_.emplace(event.stopped_for, above);
  if (!is_first) entry->second = model::higher(entry->second, above);
  const model::PreemptionHold* hold = state_.books->holds.find(event.stopped_for);
  if (hold == nullptr || !std::ranges::binary_search(hold->victims, event.attempt)) return;
  const bool is_overdue = hold->rule == model::PreemptionRule::kOverdue;
  if (is_overdue) findings_.count(FaultKind::kStoppedForOverdue);
  const std::uint32_t most =
      hold->rule == model::PreemptionRule::kReclaim
          ? model::team_rules(*state_.policy, victim->spec->team).max_reclaims_per_job
          : state_.policy->max_preemptions_per_job;
  if (victim->preemptions < most) return;
  findings_.violated("too-often",
                     fmt::format("job {} is stopped for others once more, after {} times",
                                 event.attempt.job.value, victim->preemptions));
}

// To one that waits, and not before its time.
bool Ledger::is_to_yield(const model::Attempt& attempt, const std::string& to) const {
  if (!attempt.yields_at.is_set() || attempt.yields_at > last_at_) return false;
  bool waits = false;
  state_.jobs.for_each([&](std::uint64_t id, const model::Job& job) {
    waits = waits || (job.state == model::JobState::kQueued && to == fmt::format("job {}", id));
  });
  return waits;
}

void Ledger::on(const model::YieldPutOff&) {
  findings_.count(FaultKind::kYieldPutOff);
}

void Ledger::on(const model::AttemptEnded& event) {
  ends_.insert(event.attempt);
  check_exit(event);
  Job& job = jobs_[event.attempt.job];
  job.end = event.reason;
  job.did_well = event.exit.code == 0;
  note_innocence(event, job);
  const bool by_itself = event.reason == model::EndReason::kNone;
  if (by_itself && is_to_be_queued_again(job.stop)) findings_.count(FaultKind::kRequeueCrossed);
  if (by_itself && is_by_person(job.stop)) findings_.count(FaultKind::kCancelCrossed);
  if (event.exit.lost != Lost::kNo) truth_.give_up(event.attempt);
}

// The end came by no fault of the job. What a person decided about it meanwhile counts more.
void Ledger::note_innocence(const model::AttemptEnded& event, Job& job) {
  const bool is_lost = event.exit.lost != Lost::kNo;
  const bool is_unfit = !is_lost && heard_unfit_.contains(event.attempt) && !is_by_person(job.stop);
  const bool is_neighbours = !is_lost && heard_innocent_.contains(event.attempt) &&
                             event.reason == model::EndReason::kNone &&
                             job.stop == model::EndReason::kNone;
  job.gpu_faults = event.reason == model::EndReason::kGpuFault ? job.gpu_faults + 1 : 0;
  job.neighbour_faults = is_neighbours ? job.neighbour_faults + 1 : 0;
  const bool is_beyond = job.neighbour_faults > model::kMaxNeighbourFaults;
  job.is_free =
      is_unfit ? job.gpu_faults < model::kMaxHardwareFailures : is_neighbours && !is_beyond;
  if (is_beyond) job.neighbour_faults = 0;
}

void Ledger::check_free() {
  const std::optional<Used> before = std::exchange(to_stay_, std::nullopt);
  if (!before) return;
  const model::Job* const job = state_.jobs.find(before->job.value);
  if (job == nullptr) return;
  if (job->failures == before->failures && job->losses == before->losses) return;
  findings_.violated("for-free", fmt::format("job {} used a retry for an end that was no fault of "
                                             "its own",
                                             before->job.value));
}

bool Ledger::has_reset(model::NodeId id, std::string_view gpu_uuid) const {
  const model::Node* const node = state_.nodes.find(id.value);
  if (node == nullptr) return false;
  return std::ranges::any_of(node->gpus, [&](const model::Gpu& gpu) {
    const model::Taint* const own = model::find_taint(gpu.taints, model::TaintSource::kReset);
    return gpu.info.uuid == gpu_uuid && own != nullptr && own->effect == model::TaintEffect::kOut;
  });
}

bool Ledger::has_limit(model::JobId job, base::Duration limit) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return false;
  const auto [first, last] =
      std::ranges::equal_range(limits_, job, {}, &std::pair<model::JobId, base::Duration>::first);
  return std::any_of(first, last, [&](const auto& entry) {
    return std::ranges::any_of(found->second.speeds, [&](std::uint32_t speed) {
      return model::limit_at_speed(entry.second, speed) == limit;
    });
  });
}

bool Ledger::was_told_lost(AttemptId attempt) const {
  const auto start = starts_.find(attempt);
  if (start == starts_.end()) return false;
  return std::ranges::any_of(start->second.node_names, [&](const std::string& node) {
    return heard_unreachable_.contains(node) || has_booted_anew(node);
  });
}

bool Ledger::has_booted_anew(const std::string& node) const {
  const auto boots = heard_boots_.find(node);
  return boots != heard_boots_.end() && boots->second.size() > 1;
}

// Kubernetes took a pod away before all of the attempt ran, or with the node under it: its exit
// code is made up.
bool Ledger::is_of_a_pod_taken_away(const model::AttemptEnded& event) const {
  const model::Attempt* attempt = controller::find_attempt(state_, event.attempt);
  if (attempt == nullptr) return false;
  const auto engine = model::engine_of(
      state_.nodes, *controller::find_job(state_, event.attempt.job), event.attempt.attempt);
  const Truth::Attempt* truth = truth_.find(event.attempt);
  // What went with its node has ended, and no exit of it was ever there.
  const bool has_no_exit = truth != nullptr && truth->has_ended && truth->ended_with({});
  if (event.reason == model::EndReason::kNone && !has_no_exit) return false;
  const bool has_run = truth != nullptr && truth->starts > 0 && !has_no_exit;
  const bool is_made_up = event.exit.code == 128 + 15 || event.exit.code == 128 + 9;
  return !has_run && is_made_up && engine && !model::traits_of(*engine).is_on_this_machine;
}

void Ledger::check_exit(const model::AttemptEnded& event) {
  const Truth::Attempt* truth = truth_.find(event.attempt);
  const auto lost = heard_lost_.find(event.attempt);
  if (event.exit.lost == Lost::kNodeLost) {
    const bool is_heard = lost != heard_lost_.end() && lost->second == Lost::kNodeLost;
    if (!is_heard && !was_told_lost(event.attempt)) {
      findings_.violated("true-loss", named(event.attempt) + " is said to be lost with its node");
    }
  } else if (event.exit.lost == Lost::kUnknown) {
    if (lost == heard_lost_.end()) {
      findings_.violated("true-loss", named(event.attempt) +
                                          " is said to have ended in an unknown way, and the "
                                          "engine never said so");
    }
  } else if (event.reason == model::EndReason::kLaunchFailed ||
             event.reason == model::EndReason::kPrologFailed ||
             event.reason == model::EndReason::kEnvironmentLost ||
             (event.reason == model::EndReason::kGpuFault &&
              heard_unfit_.contains(event.attempt))) {
    if (truth != nullptr && truth->starts > 0) {
      findings_.violated("true-exit",
                         named(event.attempt) + " is said never to have started, and did");
    }
  } else if (!is_of_a_pod_taken_away(event) &&
             (truth == nullptr || !truth->ended_with(event.exit))) {
    findings_.violated("true-exit", fmt::format("{} is said to have ended with {}, and {}",
                                                named(event.attempt), shown_exit(event.exit),
                                                truth == nullptr || !truth->has_ended
                                                    ? "has not ended"
                                                    : "ended with " + shown_exit(truth->exit)));
  }
}

void Ledger::on(const model::AttemptReleased& event) {
  released_.insert(event.attempt);
  const Start& start = starts_[event.attempt];
  for (const GpuPlace& place : start.gpus) {
    const auto holders = holders_.find(place);
    if (holders == holders_.end()) continue;
    holders->second.erase(event.attempt);
    if (holders->second.empty()) holders_.erase(holders);
  }
  tenants_.erase(event.attempt);
  const Truth::Attempt* truth = truth_.find(event.attempt);
  if (truth != nullptr && truth->is_alive) {
    findings_.violated("released", named(event.attempt) + " is released while processes are left");
  }
  // A new boot has left nothing of it; of a gang there are other nodes.
  const bool is_rebooted = start.node_names.size() == 1 && has_booted_anew(start.node_names[0]);
  if (!is_rebooted && !heard_cleaned_.contains(event.attempt)) {
    findings_.violated("released",
                       named(event.attempt) + " is released before the engine said it was gone");
  }
}

void Ledger::on(const model::JobRequeued& event) {
  Job& job = jobs_[event.job];
  const model::Job* const known = state_.jobs.find(event.job.value);
  if (std::exchange(job.is_free, false) && known != nullptr) {
    to_stay_ = Used{event.job, known->failures, known->losses};
  }
  if (is_by_person(job.stop)) {
    findings_.violated("cancelled", fmt::format("job {} was told to stop for good and is queued "
                                                "again",
                                                event.job.value));
  }
  if (job.end == model::EndReason::kTimeLimit && job.stop == model::EndReason::kNone) {
    findings_.count(FaultKind::kLimitCrossed);
  }
  if (event.holds) job.is_held = true;
}

void Ledger::on(const model::JobHoldChanged& event) {
  jobs_[event.job].is_held = event.hold != model::Hold::kNone;
}

void Ledger::check_kept(model::JobId id, const Job& job, const model::JobEnded& event) {
  if (!is_to_be_queued_again(job.stop)) return;
  if (event.how == model::JobTrigger::kComplete) findings_.count(FaultKind::kZeroCompleted);
  if (job.may_end(event.how)) return;
  findings_.violated(
      "queued-again",
      fmt::format("attempt {} of job {} was told to stop in order to be queued again "
                  "({}), and the job ends with it: {}",
                  job.attempts, id.value, to_string(job.stop), to_string(state_after(event.how))));
}

// Counted from its start to its end, for what it does in its grace comes on top.
void Ledger::check_given_time(model::JobId id, const Job& job) {
  const Truth::Attempt* truth = truth_.find({id, job.attempts});
  if (truth == nullptr || !truth->has_ended) return;
  const base::Duration given = model::limit_at_speed(job.limit, job.speed);
  const base::Duration had = truth->ended_at - truth->started_at;
  // Kubernetes tells the seconds of a start and of an end, and no parts of them.
  const base::Duration untold = truth->ranks_started.empty() ? base::Duration() : base::seconds(2);
  if (had + untold >= given) return;
  findings_.violated("given-time",
                     fmt::format("job {} timed out after {} ms and had been given {} ms", id.value,
                                 base::whole_milliseconds(had), base::whole_milliseconds(given)));
}

void Ledger::on(const model::JobEnded& event) {
  Job& job = jobs_[event.job];
  if (std::exchange(job.is_free, false)) {
    findings_.violated("for-free", fmt::format("job {} ends with an attempt that ended by no fault "
                                               "of its own",
                                               event.job.value));
  }
  check_kept(event.job, job, event);
  const bool at_limit =
      event.how == model::JobTrigger::kTimeOut && event.reason == model::EndReason::kTimeLimit;
  if (at_limit) check_given_time(event.job, job);
  if (job.has_ended) {
    findings_.violated("ends-once", fmt::format("job {} ended twice", event.job.value));
  }
  job.has_ended = true;
  job.how = event.how;
}

}  // namespace gpu_platform::simulation
