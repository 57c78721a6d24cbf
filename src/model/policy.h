#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/shared.h"
#include "base/units.h"
#include "model/budget.h"
#include "model/engine_kind.h"
#include "model/gpu_load.h"
#include "model/job.h"
#include "model/price.h"
#include "model/team.h"

namespace gpu_platform::model {

// Says what unmanaged processes on a GPU mean for it.
enum class UnmanagedProcessPolicy : std::uint8_t {
  kIgnore,  // nothing
  kAvoid,   // no new work while they are there
  kAlert,   // shown and logged; work is placed all the same
};
inline constexpr std::size_t kUnmanagedProcessPolicies = 3;
std::string_view to_string(UnmanagedProcessPolicy policy);  // "avoid"

// Says what it means for a GPU that it does not answer or had a fault.
enum class SickGpuPolicy : std::uint8_t {
  kDrain,  // it gets no new work
  kOff,    // nothing: it is shown
};
inline constexpr std::size_t kSickGpuPolicies = 2;

// Whose judgement of faults of GPUs is used: docs/health.md has the rules of each.
enum class HealthProfile : std::uint8_t { kNvidia, kCloud, kStrict };
inline constexpr std::size_t kHealthProfiles = 3;
std::string_view to_string(HealthProfile profile);  // "nvidia"

// What is done with verdicts about GPUs.
enum class HealthMode : std::uint8_t {
  kExecute,
  kShadow,  // shown, and nothing is done
  kOff,     // none is made, and no evidence is kept
};
inline constexpr std::size_t kHealthModes = 3;

// Who resets a GPU that needs it.
enum class HealthReset : std::uint8_t {
  kAsk,   // an operator
  kAuto,  // the platform, as soon as nothing holds the GPU; an operator may, too
  kNever,
};
inline constexpr std::size_t kHealthResets = 3;

// The check of an empty GPU before its first work, when its node's daemon has started or the GPU is
// back from being out of service.
enum class HealthCheckAtStart : std::uint8_t { kNone, kQuick };
inline constexpr std::size_t kHealthChecksAtStart = 2;

// A site's change of one rule about faults of GPUs, in the words of the configuration.
// health/policy_rules.h says what they mean.
struct HealthRule {
  std::string rule;      // "xid-31"
  std::string gpu_type;  // a type or a family; empty: all
  std::string action;    // "DEGRADE"; empty: as it is
  std::string mode;      // "shadow"; empty: as it is
  std::string nodes;     // a pattern of their names ("dgx-a*"); empty: all

  friend bool operator==(const HealthRule&, const HealthRule&) = default;
};

// By what waiting jobs are ordered; docs/scheduling.md has the formulas.
enum class QueueOrder : std::uint8_t {
  kPriority,   // points of the class, number, time of submission
  kFcfs,       // time of submission alone
  kFairShare,  // by the least usage for the shares, then as kPriority
  kWeighted,   // a sum of age, priority, fair share and size
};
inline constexpr std::size_t kQueueOrders = 4;
std::string_view to_string(QueueOrder order);  // "fair_share"

// The weight of a GPU of this type or family in usage. Other GPUs count 1.
struct GpuWeight {
  std::string type;  // canonical catalogue name or family, or the driver's model name
  std::uint32_t thousandths = 1000;

  friend bool operator==(const GpuWeight&, const GpuWeight&) = default;
};
// Returns the weight of a GPU of the type: its own weight, else its family's, else 1000.
std::uint32_t gpu_weight_of(const std::string& type, const std::vector<GpuWeight>& weights);

struct FairShare {
  base::Duration half_life = base::hours(7 * 24);  // use counts half after it
  base::Duration interval = base::minutes(5);      // between two changes of the order
  std::vector<GpuWeight> gpu_weights;

  friend bool operator==(const FairShare&, const FairShare&) = default;
};

// The weights of QueueOrder::kWeighted; at least one is not zero.
struct OrderWeights {
  std::uint32_t age = 1000;
  std::uint32_t priority = 10'000;
  std::uint32_t fair_share = 10'000;
  std::uint32_t size = 0;

  friend bool operator==(const OrderWeights&, const OrderWeights&) = default;
};

// Which GPUs several jobs may share, and how.
struct Sharing {
  std::vector<std::string> gpu_types;  // types or families; empty with is_on: all
  std::vector<std::string> nodes;      // names; empty with is_on: all
  bool is_on = false;
  SharedBetween between_users = SharedBetween::kNever;
  std::uint32_t max_jobs = 8;  // on one GPU at a time
  Rung weakest_rung = Rung::kWatchdog;
  base::Duration slice = base::seconds(10);
  // In the order of preference; none that is not here is used.
  std::vector<ShareMode> modes = {ShareMode::kMps, ShareMode::kTimeSlice};

  friend bool operator==(const Sharing&, const Sharing&) = default;
};
inline constexpr base::Duration kMinSlice = base::milliseconds(100);
inline constexpr base::Duration kMaxSlice = base::seconds(60);

// The configuration as the core knows it. Values are checked by config/ before they come here; they
// enter the state by the PolicyApplied event, so that history can be replayed.
struct Policy {
  // Points of R2.5, by PriorityClass (critical, high, medium, low); higher goes first.
  std::int64_t priority_points[4] = {1'000'000, 10'000, 1'000, 100};
  std::uint64_t max_queue_size = 100'000;
  // Limits on what one user may take of what all have; an administrator, and the user that the
  // daemon runs as, are held to the whole alone (controller/judge/admission.h).
  std::uint32_t max_queue_percent_per_user = 25;           // of max_queue_size; rounded up
  base::Bytes max_specification_bytes = base::kMiB * 256;  // of jobs in the core, by size_of()
  base::Bytes max_specification_bytes_per_user = base::kMiB * 32;
  std::uint32_t percent_for_root =
      10;                     // of max_queue_size and max_specification_bytes; rounded down
  std::uint32_t own_uid = 0;  // that the daemon runs as
  base::Duration max_time_limit = base::hours(48);
  // The limit of a job without one whose team has no default; zero: max_time_limit, as in policies
  // that were stored before this key existed.
  base::Duration default_time_limit;
  std::uint32_t max_loss_retries = 3;                // hardware and node loss
  base::Duration retry_backoff = base::seconds(10);  // doubles with each retry
  base::Duration max_retry_backoff = base::minutes(10);
  bool requeue_on_node_loss = true;
  bool auto_retry_failed_jobs =
      false;  // an application's failure is retried max_loss_retries times
  bool allow_root_jobs = true;
  base::Duration stop_grace = base::seconds(30);
  base::Duration request_id_lifetime = base::hours(24);  // counted from the end of the job
  UnmanagedProcessPolicy unmanaged_processes = UnmanagedProcessPolicy::kAvoid;
  SickGpuPolicy sick_gpus = SickGpuPolicy::kDrain;
  HealthProfile health_profile = HealthProfile::kNvidia;
  HealthMode health_mode = HealthMode::kExecute;  // see mode_of()
  HealthReset health_reset = HealthReset::kAsk;
  HealthCheckAtStart health_check_at_start = HealthCheckAtStart::kNone;
  std::uint32_t health_max_out_percent =
      10;                                // of a type's GPUs that health keeps from work at once
  std::vector<HealthRule> health_rules;  // over those of the profile
  bool can_notify = false;               // the site has a notification command
  PriorityClass highest_user_priority = PriorityClass::kHigh;  // administrators may go above
  std::uint32_t backfill_depth = 8;  // waiting jobs with a planned start; 0: no backfill
  base::Duration idle_timeout;       // of a job with a terminal that names none; zero: none
  QueueOrder order = QueueOrder::kPriority;
  FairShare fair_share;
  OrderWeights weights;
  base::Shared<Organisation> organisation;  // teams and quotas
  std::uint64_t max_array_size = 10'000;    // members of one job array
  bool allow_preemption = true;
  // Jobs of a class below it may be stopped for others unless they say no; the rest if they say so.
  PriorityClass preempt_below = PriorityClass::kMedium;
  std::uint32_t max_preemptions_per_job = 3;
  // The minimum run time before a job is preempted. Reclaims have reclaim_min_runtime; a team may
  // set its own.
  base::Duration preempt_min_runtime = base::minutes(10);
  // The limits for jobs that borrow, unless their team sets its own: the minimum run time before
  // they are reclaimed, and the number of stops after which they are not.
  base::Duration reclaim_min_runtime;
  std::uint32_t max_reclaims_per_job = 3;

  // The oldest waiting job of a team goes before its like after so long; zero: never.
  base::Duration overdue_after = base::hours(1);
  // Lets jobs that can be stopped in front of places kept for others if they are expected to be
  // gone by then; they are stopped if they are not.
  bool backfill_by_prediction = true;
  // The part of each node's CPUs and memory that is left to CPU jobs by GPU jobs that name neither.
  std::uint32_t cpu_job_reserve_percent = 5;
  // The audit trail keeps nothing older than this, and not many more entries than this.
  base::Duration audit_keep = base::hours(90 * 24);
  std::uint64_t max_audit_entries = 1'000'000;
  // How long the output of ended jobs and their place in the history are kept, and the maximum
  // number of such jobs. Zero: for ever, and any number.
  base::Duration output_keep;
  base::Duration job_keep;
  std::uint64_t max_ended_jobs = 0;
  base::Duration ledger_keep;         // how long the ledger keeps its lines; zero: for ever
  base::Duration max_token_lifetime;  // of new tokens; zero: they may be without an end
  Sharing sharing;
  LoadRules load_rules;
  bool has_containers = false;  // jobs may name an image (execution.containers)
  // The engines that run jobs here, by kind: this host or its emulated nodes, a cluster.
  bool engines[kEngineKinds] = {true};
  base::Shared<Billing> billing;
  std::vector<Budget> budgets;  // of the configuration; one of each holder
  // Patterns of the annotations that jobs may set on their pods; empty: none.
  std::vector<std::string> pod_annotations;

  bool has_engine(EngineKind kind) const { return engines[static_cast<std::size_t>(kind)]; }
  void set_engine(EngineKind kind, bool is_there) {
    engines[static_cast<std::size_t>(kind)] = is_there;
  }

  friend bool operator==(const Policy&, const Policy&) = default;
};

// Returns the mode in force: the former key sick_gpus switches health off, too.
HealthMode mode_of(const Policy& policy);

// Returns whether the job, by what it asked for, may be stopped to make room for a job of a higher
// class. A job that takes input is spared unless it says otherwise, because a person uses it, or
// its input could not be sent again.
bool is_preemptible(const JobSpec& spec, const Policy& policy);
// Returns whether the job may run on GPUs that are guaranteed to others: only a preemptible job
// may.
bool may_borrow(const JobSpec& spec, const Policy& policy);

// What applies to the jobs of a team.
struct TeamRules {
  base::Duration preempt_min_runtime;
  base::Duration reclaim_min_runtime;
  std::uint32_t max_reclaims_per_job = 0;
  base::Duration default_time_limit;  // of a job that names none; at most the site's longest
  std::string default_time_limit_of;  // the team that sets it; empty: the site
};
// Returns the rules for jobs of the team: each from the nearest team, from it upwards, that sets
// it, else from the policy. Cost: the teams above it.
TeamRules team_rules(const Policy& policy, std::string_view team);

}  // namespace gpu_platform::model
