#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/member_count.h"
#include "base/shared.h"
#include "model/event.h"
#include "model/job.h"
#include "model/job_spec_fields.h"
#include "model/ledger.h"
#include "model/node.h"
#include "model/policy.h"
#include "model/preemption_hold.h"
#include "model/reservation.h"
#include "model/run_time_team.h"
#include "model/token.h"

// Every struct that the store keeps, as the list of its members: the codec writes and reads by it,
// and the tests draw random values by it (testing/random_value.h). A list that leaves out a member
// does not compile.

namespace gpu_platform::model {

// fields(value) ties the members in their stored order. The order is the format: append only.

inline auto fields(Wall& v) {
  return std::tie(v.memory, v.compute);
}
inline auto fields(Tenant& v) {
  return std::tie(v.uid, v.team);
}
inline auto fields(GpuGrant& v) {
  return std::tie(v.gpu_index, v.share, v.memory, v.mode, v.wall);
}
inline auto fields(NodeAllocation& v) {
  return std::tie(v.node, v.grants, v.cpus, v.memory, v.level);
}
inline auto fields(Allocation& v) {
  return std::tie(v.nodes, v.speed, v.tenant);
}
inline auto fields(Priority& v) {
  return std::tie(v.priority_class, v.number);
}
inline auto fields(EngineSet& v) {
  return std::tie(v.bits);
}
inline auto fields(ResourceRequest& v) {
  return std::apply([&v](const auto&... field) { return std::tie(v.*field.member...); },
                    kRequestFields);
}
inline auto fields(Label& v) {
  return std::tie(v.key, v.value);
}
inline auto fields(LimitSignal& v) {
  return std::tie(v.signal, v.before, v.first_process_only);
}
inline auto fields(TerminalSize& v) {
  return std::tie(v.columns, v.rows);
}
inline auto fields(IndexRun& v) {
  return std::tie(v.first, v.last, v.step);
}
inline auto fields(ArraySpec& v) {
  return std::tie(v.runs, v.limit);
}
inline auto fields(DependencyTarget& v) {
  return std::tie(v.job, v.whole_array);
}
inline auto fields(Dependency& v) {
  return std::tie(v.kind, v.on);
}
inline auto fields(TargetOutcome& v) {
  return std::tie(v.open, v.failed, v.failed_as, v.unstarted);
}
inline auto fields(NewDependencies& v) {
  return std::tie(v.waits_for, v.failure);
}
inline auto fields(JobSpec& v) {
  return std::apply([&v](const auto&... field) { return std::tie(v.request, v.*field.member...); },
                    kJobSpecFields);
}
inline auto fields(Exit& v) {
  return std::tie(v.code, v.signal, v.lost);
}
inline auto fields(Usage& v) {
  return std::tie(v.cpu_time, v.peak_memory);
}
inline auto fields(StepUse& v) {
  return std::tie(v.user_time, v.system_time, v.peak_memory, v.all_memory, v.peak_task,
                  v.least_time, v.least_task);
}
inline auto fields(JobStep& v) {
  return std::tie(v.number, v.name, v.tasks, v.nodes, v.cpus, v.memory, v.gpus, v.started_at,
                  v.ended_at, v.exit, v.use);
}
inline auto fields(StartPrediction& v) {
  return std::tie(v.made_at, v.by_limits, v.p50, v.p90, v.basis, v.after, v.jobs_ahead,
                  v.simulated_p50, v.simulated_p90);
}
inline auto fields(GrantedGpu& v) {
  return std::tie(v.uuid, v.model, v.link);
}
inline auto fields(GrantedNode& v) {
  return std::tie(v.name, v.sockets, v.gpus);
}
inline auto fields(Attempt& v) {
  return std::tie(v.number, v.state, v.why, v.allocation, v.boot_id, v.pid, v.requested_at,
                  v.started_at, v.ended_at, v.released_at, v.exit, v.stop_reason, v.reason,
                  v.kill_requested, v.by, v.detail, v.usage, v.time_limit, v.preempted_jobs,
                  v.passed, v.is_borrowed, v.yields_at, v.stops_above, v.began_overdue, v.gpu_type,
                  v.steps, v.granted, v.preflight, v.choices, v.is_reclaimed, v.limit_by_budget);
}
inline auto fields(Job& v) {
  return std::tie(v.id, v.spec, v.state, v.submitted_at, v.eligible_at, v.ended_at, v.reason, v.by,
                  v.detail, v.failures, v.losses, v.attempts, v.hold, v.prolog_failed_on,
                  v.array_id, v.array_index, v.waits_for, v.dependency_failure, v.preemptions,
                  v.overdue_since, v.prediction, v.stopped_for_it, v.turn, v.early_prediction,
                  v.avoid_gpus, v.hardware_failures, v.neighbour_faults);
}
inline auto fields(Turn& v) {
  return std::tie(v.of, v.since, v.number, v.gpus);
}
inline auto fields(JobArray& v) {
  return std::tie(v.id, v.members, v.size, v.limit, v.outcome);
}
inline auto fields(GpuInfo& v) {
  return std::tie(v.uuid, v.model, v.type, v.memory, v.pci_address, v.minor, v.numa_node,
                  v.compute_major);
}
inline auto fields(GpuLink& v) {
  return std::tie(v.kind, v.nvlinks, v.nvlink_version);
}
inline auto fields(NumaNode& v) {
  return std::tie(v.id, v.socket, v.cpus, v.memory);
}
inline auto fields(NetworkPlace& v) {
  return std::tie(v.domain, v.rack, v.zone);
}
inline auto fields(Topology& v) {
  return std::tie(v.numa_nodes, v.links);
}
inline auto fields(NodeInfo& v) {
  return std::tie(v.name, v.emulated, v.boot_id, v.cpus, v.memory, v.driver_version, v.gpus,
                  v.topology, v.network, v.engine, v.others_cpus, v.others_memory, v.capacity,
                  v.share_modes, v.watches_gpu_memory);
}
inline auto fields(AttemptId& v) {
  return std::tie(v.job, v.attempt);
}
inline auto fields(GpuRef& v) {
  return std::tie(v.node, v.index);
}
inline auto fields(GpuHolder& v) {
  return std::tie(v.attempt, v.share, v.memory, v.phase, v.mode, v.uid, v.team);
}
inline auto fields(Taint& v) {
  return std::tie(v.source, v.effect, v.text, v.by, v.at, v.until, v.repair);
}
inline auto fields(Evidence& v) {
  return std::tie(v.kind, v.source, v.at, v.last, v.count, v.code, v.value, v.is_over, v.job,
                  v.user, v.program, v.pid, v.gpu_instance, v.registers, v.text);
}
inline auto fields(GpuLoad& v) {
  return std::tie(v.utilization_percent, v.memory_free);
}
inline auto fields(GpuChoice& v) {
  return std::tie(v.node_place, v.index, v.availability, v.load);
}
inline auto fields(GpuClock& v) {
  return std::tie(v.since, v.kind, v.rest);
}
inline auto fields(Gpu& v) {
  return std::tie(v.info, v.state, v.cause, v.holders, v.is_reported, v.unmanaged_processes,
                  v.former_avoids_processes, v.changed_by, v.changed_at, v.former_unavailable,
                  v.taints, v.evidence, v.withheld_verdict, v.load, v.clock);
}
inline auto fields(Node& v) {
  return std::tie(v.id, v.state, v.cause, v.name, v.emulated, v.boot_id, v.driver_version, v.cpus,
                  v.memory, v.cpus_used, v.memory_used, v.gpus, v.topology, v.former_is_heard,
                  v.prolog_failed_for, v.epilog_failed_for, v.network, v.engine, v.others_cpus,
                  v.others_memory, v.former_service, v.former_service_cause, v.capacity, v.taints,
                  v.evidence, v.share_modes, v.watches_gpu_memory);
}
inline auto fields(TypeQuota& v) {
  return std::tie(v.type, v.max_gpus, v.guaranteed_gpus, v.borrow_limit, v.lend_limit, v.gpu_hours);
}
inline auto fields(Quota& v) {
  return std::tie(v.max_gpus, v.max_running_jobs, v.max_queued_jobs, v.gpu_hours, v.guaranteed_gpus,
                  v.borrow_limit, v.lend_limit, v.gpu_types, v.over_quota_weight);
}
inline auto fields(Member& v) {
  return std::tie(v.user, v.shares);
}
inline auto fields(Team& v) {
  return std::tie(v.name, v.parent, v.shares, v.members, v.quota, v.reclaim_min_runtime,
                  v.max_reclaims_per_job, v.preempt_min_runtime, v.default_time_limit);
}
inline auto fields(NamedQuota& v) {
  return std::tie(v.name, v.quota);
}
inline auto fields(Organisation& v) {
  return std::tie(v.teams, v.of_each_user, v.of_users, v.of_projects, v.period, v.allocation,
                  v.reserved_thousandths, v.file);
}
inline auto fields(Invitation& v) {
  return std::tie(v.user, v.shares, v.by);
}
inline auto fields(RunTimeTeam& v) {
  return std::tie(v.name, v.parent, v.shares, v.members, v.coordinators, v.quota, v.lowered,
                  v.set_by, v.set_at, v.invited, v.default_of);
}
inline auto fields(GpuWeight& v) {
  return std::tie(v.type, v.thousandths);
}
inline auto fields(FairShare& v) {
  return std::tie(v.half_life, v.interval, v.gpu_weights);
}
inline auto fields(OrderWeights& v) {
  return std::tie(v.age, v.priority, v.fair_share, v.size);
}
inline auto fields(HealthRule& v) {
  return std::tie(v.rule, v.gpu_type, v.action, v.mode, v.nodes);
}
inline auto fields(Sharing& v) {
  return std::tie(v.gpu_types, v.nodes, v.is_on, v.between_users, v.max_jobs, v.weakest_rung,
                  v.slice, v.modes);
}
inline auto fields(LoadRules& v) {
  return std::tie(v.is_on, v.min_memory_mb, v.max_utilization, v.memory_weight,
                  v.utilization_weight, v.idle_utilization, v.idle_memory);
}
inline auto fields(Price& v) {
  return std::tie(v.gpu_type, v.capacity, v.node, v.from, v.until, v.per_hour);
}
inline auto fields(CpuPrices& v) {
  return std::tie(v.core_hour, v.gib_hour);
}
inline auto fields(Discount& v) {
  return std::tie(v.team, v.basis_points);
}
inline auto fields(EnergyFactors& v) {
  return std::tie(v.per_kwh, v.co2_grams_per_kwh);
}
inline auto fields(Billing& v) {
  return std::tie(v.currency, v.prices, v.spot_discount_percent, v.cpu, v.discounts,
                  v.preempted_is_free, v.energy);
}
inline auto fields(PriceEntry& v) {
  return std::tie(v.id, v.price, v.begin, v.end, v.by, v.derived_from);
}
inline auto fields(PriceBook& v) {
  return std::tie(v.entries, v.listed, v.spot_discount_percent);
}
inline auto fields(BudgetKey& v) {
  return std::tie(v.holder, v.name);
}
inline auto fields(BudgetOverride& v) {
  return std::tie(v.until, v.by, v.why);
}
inline auto fields(Budget& v) {
  return std::tie(v.key, v.period, v.amount, v.act, v.set_by, v.over);
}
inline auto fields(ExactAmount& v) {
  return std::tie(v.high, v.low);
}
inline auto fields(BudgetState& v) {
  return std::tie(v.budget, v.period_begin, v.settled, v.level, v.level_since, v.counted);
}
inline auto fields(LedgerLine& v) {
  return std::tie(v.kind, v.node, v.gpu_uuid, v.gpu_type, v.capacity, v.share, v.price, v.from,
                  v.started, v.ended, v.to, v.rest, v.attempt, v.segment, v.mode, v.user, v.team,
                  v.project, v.job_name, v.job_kind, v.priority, v.labels, v.not_billed, v.discount,
                  v.cpus, v.memory_mib, v.core_hour, v.gib_hour, v.amount, v.text, v.by);
}
inline auto fields(Policy& v) {
  return std::tie(
      v.priority_points[0], v.priority_points[1], v.priority_points[2], v.priority_points[3],
      v.max_queue_size, v.max_time_limit, v.max_loss_retries, v.retry_backoff, v.max_retry_backoff,
      v.requeue_on_node_loss, v.auto_retry_failed_jobs, v.stop_grace, v.request_id_lifetime,
      v.allow_root_jobs, v.unmanaged_processes, v.highest_user_priority, v.can_notify,
      v.backfill_depth, v.idle_timeout, v.organisation, v.fair_share, v.weights, v.order,
      v.allow_preemption, v.preempt_below, v.max_preemptions_per_job, v.preempt_min_runtime,
      v.max_array_size, v.overdue_after, v.backfill_by_prediction, v.audit_keep,
      v.max_audit_entries, v.max_queue_percent_per_user, v.max_specification_bytes,
      v.max_specification_bytes_per_user, v.percent_for_root, v.own_uid, v.cpu_job_reserve_percent,
      v.reclaim_min_runtime, v.max_reclaims_per_job, v.max_token_lifetime, v.output_keep,
      v.job_keep, v.max_ended_jobs, v.has_containers, v.engines[0], v.engines[1],
      v.default_time_limit, v.sick_gpus, v.health_profile, v.health_mode, v.health_reset,
      v.health_max_out_percent, v.health_rules, v.health_check_at_start, v.sharing,
      v.pod_annotations, v.load_rules, v.billing, v.budgets, v.ledger_keep);
}
inline auto fields(PreemptionHold& v) {
  return std::tie(v.beneficiary, v.allocation, v.victims, v.decided_at, v.rule);
}
inline auto fields(ReservationPart& v) {
  return std::tie(v.node, v.gpus, v.whole_node);
}
inline auto fields(Reservation& v) {
  return std::tie(v.name, v.begin, v.end, v.maintenance, v.teams, v.users, v.parts, v.let_finish,
                  v.made_by, v.made_at, v.repeat, v.last_begin, v.utc_offset);
}
inline auto fields(ProvenNames& v) {
  return std::tie(v.names, v.issuer, v.user_claim, v.user);
}
inline auto fields(Token& v) {
  return std::tie(v.id, v.name, v.user, v.uid, v.gid, v.role, v.created_at, v.created_by,
                  v.expires_at, v.hash, v.made_with, v.request_id, v.used_at, v.proven);
}
inline auto fields(PolicyApplied& v) {
  return std::tie(v.policy, v.by);
}
inline auto fields(NodeSeen& v) {
  return std::tie(v.node, v.info, v.reuses_places);
}
inline auto fields(NodeStateChanged& v) {
  return std::tie(v.node, v.trigger, v.cause, v.by);
}
inline auto fields(GpuStateChanged& v) {
  return std::tie(v.gpu, v.trigger, v.cause, v.by, v.source);
}
// Not the form in journals: those are the next two.
inline auto fields(TaintChanged& v) {
  return std::tie(v.node, v.gpu, v.taint, v.is_lifted);
}
struct StoredGpuTaint {
  GpuRef gpu;
  Taint taint;
  bool is_lifted = false;
};
inline auto fields(StoredGpuTaint& v) {
  return std::tie(v.gpu, v.taint, v.is_lifted);
}
struct StoredNodeTaint {
  NodeId node;
  Taint taint;
  bool is_lifted = false;
};
inline auto fields(StoredNodeTaint& v) {
  return std::tie(v.node, v.taint, v.is_lifted);
}
inline auto fields(EvidenceRecorded& v) {
  return std::tie(v.node, v.gpu, v.evidence);
}
inline auto fields(VerdictWithheld& v) {
  return std::tie(v.gpu, v.text);
}
inline auto fields(UnmanagedProcessesChanged& v) {
  return std::tie(v.gpu, v.text, v.avoid, v.load, v.why);
}
inline auto fields(GpuUnavailableChanged& v) {
  return std::tie(v.gpu, v.text);
}
inline auto fields(NodeServiceChanged& v) {
  return std::tie(v.node, v.service, v.cause);
}
inline auto fields(NodeOthersChanged& v) {
  return std::tie(v.node, v.cpus, v.memory);
}
inline auto fields(JobSubmitted& v) {
  return std::tie(v.job, v.spec, v.hold, v.waits_for, v.dependency_failure, v.by);
}
inline auto fields(CredentialName& v) {
  return std::tie(v.name, v.issuer, v.user_claim);
}
inline auto fields(Origin& v) {
  return std::tie(v.door, v.user, v.uid, v.pid, v.token, v.credential);
}
inline auto fields(JobOwner& v) {
  return std::tie(v.user, v.uid);
}
inline auto fields(Refusal& v) {
  return std::tie(v.code, v.text);
}
inline auto fields(AuditedCall& v) {
  return std::tie(v.by, v.action, v.owner, v.jobs, v.job_count, v.gpus, v.gpu_count, v.target,
                  v.refusal, v.request_id, v.calls, v.since);
}
inline auto fields(AuditEntry& v) {
  return std::tie(v.seq, v.at, v.call);
}
inline auto fields(CallAudited& v) {
  return std::tie(v.call);
}
inline auto fields(ArchivedEnd& v) {
  return std::tie(v.job, v.state, v.ended_at);
}
inline auto fields(StoreRepaired& v) {
  return std::tie(v.last_job_id, v.ended);
}
inline auto fields(JobHoldChanged& v) {
  return std::tie(v.job, v.hold, v.by);
}
inline auto fields(JobChanged& v) {
  return std::tie(v.job, v.to, v.dependencies, v.by);
}
inline auto fields(JobsRaised& v) {
  return std::tie(v.job, v.raised, v.in_order, v.by);
}
inline auto fields(SignalRequested& v) {
  return std::tie(v.attempt, v.signal, v.by);
}
inline auto fields(JobEligible& v) {
  return std::tie(v.job);
}
inline auto fields(StartRequested& v) {
  return std::tie(v.attempt, v.allocation, v.why, v.price_class, v.boot_id, v.passed, v.yields_at);
}
inline auto fields(AttemptStarted& v) {
  return std::tie(v.attempt, v.pid, v.started_at, v.preflight);
}
inline auto fields(StepRecorded& v) {
  return std::tie(v.attempt, v.step);
}
inline auto fields(StopRequested& v) {
  return std::tie(v.attempt, v.reason, v.without_grace, v.by, v.stopped_for);
}
inline auto fields(AttemptEnded& v) {
  return std::tie(v.attempt, v.ended_at, v.exit, v.reason, v.detail, v.usage);
}
inline auto fields(AttemptReleased& v) {
  return std::tie(v.attempt, v.epilog_failure);
}
inline auto fields(JobRequeued& v) {
  return std::tie(v.job, v.eligible_at, v.preempted, v.counts_as_failure, v.asked_for,
                  v.prolog_failed, v.holds, v.hardware_failed, v.avoid_gpus, v.neighbour_failed);
}
inline auto fields(JobEnded& v) {
  return std::tie(v.job, v.how, v.reason, v.by, v.detail);
}
inline auto fields(UseCounted&) {
  return std::tie();
}
inline auto fields(QuotaPeriodBegan& v) {
  return std::tie(v.begin);
}
inline auto fields(JobOverdue& v) {
  return std::tie(v.job);
}
inline auto fields(PreemptionDecided& v) {
  return std::tie(v.job, v.held, v.victims, v.rule);
}
inline auto fields(ReservationMade& v) {
  return std::tie(v.reservation);
}
inline auto fields(ReservationEnded& v) {
  return std::tie(v.name, v.by);
}
inline auto fields(ReservationChanged& v) {
  return std::tie(v.reservation, v.by);
}
inline auto fields(TokenCreated& v) {
  return std::tie(v.token);
}
inline auto fields(TokenRevoked& v) {
  return std::tie(v.token, v.name, v.owner, v.by);
}
inline auto fields(TokenUsed& v) {
  return std::tie(v.token, v.used_at);
}
inline auto fields(PriceSet& v) {
  return std::tie(v.price, v.by);
}
inline auto fields(PriceWithdrawn& v) {
  return std::tie(v.id, v.by);
}
inline auto fields(BudgetSet& v) {
  return std::tie(v.budget, v.by);
}
inline auto fields(BudgetRemoved& v) {
  return std::tie(v.key, v.by);
}
inline auto fields(BudgetsCounted&) {
  return std::tie();
}
inline auto fields(LedgerCorrected& v) {
  return std::tie(v.user, v.team, v.project, v.attempt, v.amount, v.text, v.by);
}
inline auto fields(TeamSet& v) {
  return std::tie(v.team);
}
inline auto fields(TeamRemoved& v) {
  return std::tie(v.name, v.by);
}
inline auto fields(PreemptionHoldDropped& v) {
  return std::tie(v.job);
}
inline auto fields(YieldPutOff& v) {
  return std::tie(v.attempt, v.yields_at);
}
inline auto fields(StartPredicted& v) {
  return std::tie(v.job, v.prediction, v.is_early);
}

// A struct with a list of its own.
template <class T>
concept IsListed = requires(T& v) { fields(v); };

// How many members, the last ones, are never stored.
template <class T>
inline constexpr std::size_t kNeverStored = 0;
template <>
inline constexpr std::size_t kNeverStored<ResourceRequest> = 1;  // barred_types
template <>
inline constexpr std::size_t kNeverStored<Member> = 1;  // only_if_named

// True where the list has as many entries as the struct has members that are stored.
template <IsListed T>
consteval bool lists_every_member() {
  return std::tuple_size_v<decltype(fields(std::declval<T&>()))> + kNeverStored<T> ==
         base::member_count<T>();
}

// The number of values of each stored enumeration. A larger number in a record is damage.
template <class T>
inline constexpr std::size_t kValues = 0;
template <>
inline constexpr std::size_t kValues<LedgerKind> = kLedgerKinds;
template <>
inline constexpr std::size_t kValues<NotBilled> = kNotBilledReasons;
template <>
inline constexpr std::size_t kValues<RestKind> = kRestKinds;
template <>
inline constexpr std::size_t kValues<BudgetPeriod> = kBudgetPeriods;
template <>
inline constexpr std::size_t kValues<BudgetAct> = kBudgetActs;
template <>
inline constexpr std::size_t kValues<BudgetLevel> = kBudgetLevels;
template <>
inline constexpr std::size_t kValues<QuotaHolder> = kQuotaHolders;
template <>
inline constexpr std::size_t kValues<JobState> = kJobStates;
template <>
inline constexpr std::size_t kValues<AllocationMode> = kAllocationModes;
template <>
inline constexpr std::size_t kValues<JobTrigger> = kJobTriggers;
template <>
inline constexpr std::size_t kValues<AttemptState> = kAttemptStates;
template <>
inline constexpr std::size_t kValues<LinkKind> = kLinkKinds;
template <>
inline constexpr std::size_t kValues<PlacementLevel> = kPlacementLevels;
template <>
inline constexpr std::size_t kValues<NumaPolicy> = kNumaPolicies;
template <>
inline constexpr std::size_t kValues<NetworkLevel> = kNetworkLevels;
template <>
inline constexpr std::size_t kValues<GpuState> = kGpuStates;
template <>
inline constexpr std::size_t kValues<HolderPhase> = kHolderPhases;
template <>
inline constexpr std::size_t kValues<GpuTrigger> = kGpuTriggers;
template <>
inline constexpr std::size_t kValues<NodeState> = kNodeStates;
template <>
inline constexpr std::size_t kValues<NodeTrigger> = kNodeTriggers;
template <>
inline constexpr std::size_t kValues<TaintSource> = kTaintSources;
template <>
inline constexpr std::size_t kValues<TaintEffect> = kTaintEffects;
template <>
inline constexpr std::size_t kValues<GpuRepair> = kGpuRepairs;
template <>
inline constexpr std::size_t kValues<EvidenceKind> = kEvidenceKinds;
template <>
inline constexpr std::size_t kValues<EvidenceSource> = kEvidenceSources;
template <>
inline constexpr std::size_t kValues<NodeService> = kNodeServices;
template <>
inline constexpr std::size_t kValues<EngineKind> = kEngineKinds;
template <>
inline constexpr std::size_t kValues<ShareMode> = kShareModes;
template <>
inline constexpr std::size_t kValues<Rung> = kRungs;
template <>
inline constexpr std::size_t kValues<Isolation> = kIsolations;
template <>
inline constexpr std::size_t kValues<SharedBetween> = kSharedBetween;
template <>
inline constexpr std::size_t kValues<CapacityClass> = kCapacityClasses;
template <>
inline constexpr std::size_t kValues<CapacityRequest> = kCapacityRequests;
template <>
inline constexpr std::size_t kValues<PriorityClass> = 4;
template <>
inline constexpr std::size_t kValues<PreemptionRule> = kPreemptionRules;
template <>
inline constexpr std::size_t kValues<JobKind> = 4;
template <>
inline constexpr std::size_t kValues<Lost> = 3;
template <>
inline constexpr std::size_t kValues<EndReason> = kEndReasons;
template <>
inline constexpr std::size_t kValues<NotifyOn> = kNotifyOns;
template <>
inline constexpr std::size_t kValues<ContainerNetwork> = kContainerNetworks;
template <>
inline constexpr std::size_t kValues<ImagePull> = kImagePulls;
template <>
inline constexpr std::size_t kValues<Preflight> = kPreflights;
template <>
inline constexpr std::size_t kValues<Hold> = kHolds;
template <>
inline constexpr std::size_t kValues<UnmanagedProcessPolicy> = kUnmanagedProcessPolicies;
template <>
inline constexpr std::size_t kValues<SickGpuPolicy> = kSickGpuPolicies;
template <>
inline constexpr std::size_t kValues<HealthProfile> = kHealthProfiles;
template <>
inline constexpr std::size_t kValues<HealthMode> = kHealthModes;
template <>
inline constexpr std::size_t kValues<HealthReset> = kHealthResets;
template <>
inline constexpr std::size_t kValues<HealthCheckAtStart> = kHealthChecksAtStart;
template <>
inline constexpr std::size_t kValues<StartWhy> = kStartWhys;
template <>
inline constexpr std::size_t kValues<DependencyKind> = kDependencyKinds;

template <>
inline constexpr std::size_t kValues<QueueOrder> = kQueueOrders;
template <>
inline constexpr std::size_t kValues<QuotaPeriod> = kQuotaPeriods;

template <>
inline constexpr std::size_t kValues<PredictionBasis> = kPredictionBases;
template <>
inline constexpr std::size_t kValues<Door> = kDoors;
template <>
inline constexpr std::size_t kValues<AuditAction> = kAuditActions;
template <>
inline constexpr std::size_t kValues<Repeat> = kRepeats;
template <>
inline constexpr std::size_t kValues<Role> = kRoles;

template <class T>
struct is_shared : std::false_type {};
template <class T>
struct is_shared<base::Shared<T>> : std::true_type {
  using Value = T;
};
template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};
template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
concept HasValueMember = !IsListed<T> && requires(T v) {
  { v.value } -> std::convertible_to<std::uint64_t>;
};
template <class T>
concept IsAmount = requires(const T v) {
  { v.value() } -> std::same_as<std::int64_t>;
  T(std::int64_t{0});
};

}  // namespace gpu_platform::model
